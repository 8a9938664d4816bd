#include "core/name_index.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace gguf::test {
namespace {

struct Names {
  std::vector<std::string> names;
  NameIndex index;

  std::optional<uint32_t> insert(const std::string& name) {
    const auto other = index.insert(name, static_cast<uint32_t>(names.size()), at());
    if (!other) names.push_back(name);
    return other;
  }
  std::optional<uint32_t> find(const std::string& name) const { return index.find(name, at()); }

 private:
  struct At {
    const std::vector<std::string>* names;
    std::string_view operator()(uint32_t position) const { return (*names)[position]; }
  };
  At at() const { return {&names}; }
};

TEST(NameIndex, ReserveIsOnlyAHint) {
  Names names;
  names.index.reserve(3);
  for (uint32_t i = 0; i < 1000; i++) ASSERT_EQ(names.insert(std::to_string(i)), std::nullopt);
  names.index.reserve(5000);
  for (uint32_t i = 0; i < 1000; i++) ASSERT_EQ(names.find(std::to_string(i)), i);
}

TEST(NameHash, TellsNamesApart) {
  // Among 2^16 names of each kind about half a pair should share a 32-bit hash; a dozen would be a broken
  // hash.
  std::set<uint32_t> numbers, nuls, words;
  size_t n_names = 0;
  for (uint32_t i = 0; i < 1 << 16; i++, n_names++) {
    numbers.insert(hash_name("blk." + std::to_string(i) + ".ffn_gate_exps.weight"));
    const uint64_t word = uint64_t{i} << 40;
    words.insert(hash_name({reinterpret_cast<const char*>(&word), sizeof word}));
    if (i < 4096) nuls.insert(hash_name(std::string(i, '\0')));
  }
  EXPECT_GT(numbers.size(), n_names - 12);
  EXPECT_GT(words.size(), n_names - 12);
  EXPECT_GT(nuls.size(), 4096u - 4);
}

TEST(NameHash, DependsOnEveryByte) {
  for (size_t size = 1; size < 70; size++) {
    const std::string name(size, 'x');
    for (size_t at = 0; at < size; at++) {
      std::string other = name;
      other[at] = 'y';
      EXPECT_NE(hash_name(name), hash_name(other)) << size << " " << at;
    }
  }
}

}  // namespace
}  // namespace gguf::test
