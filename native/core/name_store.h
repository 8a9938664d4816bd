// Where the names of a header are kept: memory that grows but never moves, so that views into it stay valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace gguf {

class NameStore {
 public:
  /** Copies a name; the view is valid as long as the store (which may be moved) is. */
  std::string_view add(const uint8_t* bytes, size_t n_bytes) {
    if (n_bytes == 0) return {};
    if (n_bytes > n_free_) {
      const size_t n_chunk_bytes = n_bytes > kChunkBytes ? n_bytes : kChunkBytes;
      std::unique_ptr<char[]> chunk(new char[n_chunk_bytes]);  // make_unique would write zeros first
      chunks_.push_back(std::move(chunk));
      free_ = chunks_.back().get();
      n_free_ = n_chunk_bytes;
    }
    char* name = free_;
    std::memcpy(name, bytes, n_bytes);
    free_ += n_bytes;
    n_free_ -= n_bytes;
    return {name, n_bytes};
  }

 private:
  static constexpr size_t kChunkBytes = 64 << 10;

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;  // in the last chunk
  size_t n_free_ = 0;
};

}  // namespace gguf
