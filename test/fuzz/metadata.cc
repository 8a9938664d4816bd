// Decoding every value of a file whose bytes change between opening and decoding, and while values are
// decoded.
//
//   | 8 changes of 4 bytes: position: u16, little-endian | byte | when | the file ...
//
// `when`: 0 never, 1 before the first value is decoded, else after that many calls of the visitor.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/parse.h"
#include "core/value_reader.h"
#include "test/fuzz/gguf_mutator.h"
#include "test/fuzz/require.h"
#include "test/fuzz/targets.h"

namespace gguf::fuzz {
namespace {

constexpr size_t kChanges = 8, kChangeBytes = 4;
constexpr size_t kOptionBytes = kChanges * kChangeBytes;

/** A file's bytes, no more, that somebody else writes to. */
class ChangingFile {
 public:
  ChangingFile(const uint8_t* changes, const uint8_t* file, size_t n_bytes)
      : changes_(changes), bytes(new uint8_t[n_bytes]), n_bytes(n_bytes) {
    if (n_bytes > 0) std::memcpy(bytes.get(), file, n_bytes);
  }

  void tick() {
    now_++;
    for (size_t i = 0; i < kChanges; i++) {
      const uint8_t* change = changes_ + i * kChangeBytes;
      if (change[3] != now_ || n_bytes == 0) continue;
      bytes[(change[0] | change[1] << 8) % n_bytes] = change[2];
      changed = true;
    }
  }

 private:
  const uint8_t* changes_;
  uint32_t now_ = 0;

 public:
  const std::unique_ptr<uint8_t[]> bytes;
  const size_t n_bytes;
  bool changed = false;
};

/** Looks at everything it is given, and checks that it comes in the order that is promised. */
class Witness : public ValueVisitor {
 public:
  Witness(ChangingFile& file, bool gives_up) : file_(file), gives_up_(gives_up) {}

  bool number(ValueType type, const void* value) override {
    look_at(static_cast<const uint8_t*>(value), fixed_size(type));
    return got(1);
  }
  bool boolean(bool value) override {
    sum_ += value;
    return got(1);
  }
  bool string(std::string_view text) override {
    look_at(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    return got(1);
  }
  bool begin_array(ValueType element_type, uint64_t length) override {
    FUZZ_REQUIRE(value_type_name(element_type) != nullptr);
    if (!levels_.empty()) got(1);
    levels_.push_back(length);
    FUZZ_REQUIRE(levels_.size() <= 64);
    return go_on();
  }
  bool numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order) override {
    std::vector<uint8_t> copy(count * fixed_size(type));
    copy_numbers(type, bytes, count, order, copy.data());
    look_at(copy.data(), copy.size());
    return got(count);
  }
  bool booleans(const uint8_t* bytes, uint64_t count) override {
    look_at(bytes, count);
    return got(count);
  }
  bool end_array() override {
    FUZZ_REQUIRE(!levels_.empty() && levels_.back() == 0);
    levels_.pop_back();
    if (levels_.empty()) n_values_++;
    return go_on();
  }

  bool complete() const { return levels_.empty() && n_values_ == 1; }

 private:
  void look_at(const uint8_t* bytes, uint64_t n_bytes) {
    for (uint64_t i = 0; i < n_bytes; i++) sum_ += bytes[i];
  }
  bool got(uint64_t count) {
    if (levels_.empty()) {
      n_values_ += count;
    } else {
      FUZZ_REQUIRE(count <= levels_.back());
      levels_.back() -= count;
    }
    return go_on();
  }
  bool go_on() {
    file_.tick();
    return !gives_up_ || ++calls_ < 3;
  }

  ChangingFile& file_;
  const bool gives_up_;
  uint32_t calls_ = 0;
  uint64_t n_values_ = 0;
  std::vector<uint64_t> levels_;  // elements still to come, of each array that is open
  volatile uint64_t sum_ = 0;
};

void check(const Status& status, const Witness& witness, const ChangingFile& file, bool gives_up) {
  if (!status) {
    FUZZ_REQUIRE(gives_up || witness.complete());
    return;
  }
  FUZZ_REQUIRE(file.changed && status->code == ErrorCode::kInvalid);
}

}  // namespace
}  // namespace gguf::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return gguf::fuzz::mutate_input(data, size, max_size, seed, gguf::fuzz::kOptionBytes);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gguf;
  using namespace gguf::fuzz;
  if (size < kOptionBytes) return -1;
  ChangingFile file(data, data + kOptionBytes, size - kOptionBytes);
  const ParseOutcome outcome =
      parse_header(file.bytes.get(), file.n_bytes, file.n_bytes, type_size, {/*partial=*/true});
  if (!outcome.result.ok()) return -1;
  const Header& header = outcome.result.value();
  file.tick();
  for (size_t i = 0; i < header.keys.size(); i++) {
    const KeyValue& entry = header.keys[i];
    const bool gives_up = i % 7 == 6;
    Witness witness(file, gives_up);
    check(read_value(entry, header, file.bytes.get(), 0, file.n_bytes, witness), witness, file, gives_up);
    // The value's bytes alone, so that reading beside them is noticed.
    ChangingFile value(data, file.bytes.get() + entry.begin, entry.end - entry.begin);
    value.changed = file.changed;
    Witness second(value, gives_up);
    check(read_value(entry, header, value.bytes.get(), entry.begin, value.n_bytes, second), second, value,
          gives_up);
  }
  return 0;
}
