// What the tests of work share: blocks with any content, and results to compare.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "dequant/dequant.h"
#include "test/native/dequant/test_isas.h"
#include "test/native/machine/on_threads.h"
#include "work/chunked_work.h"
#include "work/decode_blocks.h"

namespace gguf::test {

inline const Format& format_named(const std::string& name) {
  for (const Format& format : formats()) {
    if (name == format.name) return format;
  }
  throw std::invalid_argument(name);
}

inline std::vector<uint8_t> random_blocks(const Format& format, uint64_t n_blocks, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(n_blocks * format.block_bytes));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 13);
  return bytes;
}

/** The definition: the blocks of a selection dequantized one row after the other, by one call each. */
inline std::vector<uint8_t> plain_result(const BlockSelection& selection, const uint8_t* blocks,
                                         bool big_endian = false) {
  std::vector<uint8_t> result(static_cast<size_t>(selection.dst_bytes()));
  const auto decode = [&](uint64_t first, uint64_t count, uint8_t* to) {
    dequantize(selection.format, selection.out, Store::kPlain, big_endian,
               blocks + first * selection.format.block_bytes, count, to);
  };
  if (selection.row_blocks == 0) {
    decode(0, selection.n_blocks, result.data());
  } else {
    uint8_t* to = result.data();
    for (const uint64_t row : selection.rows) {
      decode(row * selection.row_blocks, selection.row_blocks, to);
      to += selection.row_blocks * selection.block_dst_bytes();
    }
  }
  unify_nans(result, selection.out);
  return result;
}

/** All blocks as they are stored. */
inline BlockSelection select_all(const Format& format, Out out, uint64_t n_blocks) {
  BlockSelection selection;
  selection.format = format;
  selection.out = out;
  selection.n_blocks = n_blocks;
  return selection;
}

inline BlockSelection select_rows(const Format& format, Out out, std::vector<uint64_t> rows,
                                  uint64_t row_blocks) {
  BlockSelection selection = select_all(format, out, rows.size() * row_blocks);
  selection.rows = std::move(rows);
  selection.row_blocks = row_blocks;
  return selection;
}

inline BlockSource in_memory(const std::vector<uint8_t>& blocks) {
  BlockSource source;
  source.data = blocks.data();
  return source;
}

inline bool never() {
  return false;
}

/** Does on this thread what can be done now. */
inline void do_work(ChunkedWork& work) {
  std::vector<uint8_t> scratch;
  work.work(scratch, never);
}

inline void do_work_on_threads(int n_threads, ChunkedWork& work) {
  on_threads(n_threads, [&](int) { do_work(work); });
}

/** A file with some bytes before the blocks; removed at the end. */
class BlockFile {
 public:
  static constexpr uint64_t kOffset = 100;

  explicit BlockFile(const std::vector<uint8_t>& blocks) {
    static std::atomic<int> n_files{0};
    path_ = std::filesystem::temp_directory_path() /
            ("gguf-native-work-" + std::to_string(std::random_device()()) + "-" + std::to_string(n_files++));
    std::ofstream stream(path_, std::ios::binary);
    stream << std::string(kOffset, 'x');
    stream.write(reinterpret_cast<const char*>(blocks.data()), static_cast<std::streamsize>(blocks.size()));
  }
  ~BlockFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  std::string path() const { return path_.u8string(); }
  std::shared_ptr<File> open(Access access) const { return File::open(path(), access).value(); }
  /** Keeps only the first `n_bytes` of the blocks. */
  void truncate(uint64_t n_bytes) const { std::filesystem::resize_file(path_, kOffset + n_bytes); }

  static BlockSource source(const File& file) {
    BlockSource source;
    source.file = &file;
    source.offset = kOffset;
    if (file.data() != nullptr) {
      source.data = file.data() + kOffset;
      source.mapped_bytes = file.size() - kOffset;
    }
    return source;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace gguf::test
