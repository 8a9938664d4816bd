// The one way in which bytes of a file are read: forward, in the file's byte order, never past the end.
//
//   base            offset()                  loaded                        end
//    |-----------------|------------------------|-----------------------------|
//    bytes are here ---------------------------->  not here, but in the file -->
//
// A call that would go past `loaded` changes nothing, returns false and says why in shortfall(): past the end
// of the file, or only past the bytes that are here. No comparison here can wrap: what is asked for is
// compared with what is left, never added to the position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/byte_order.h"

namespace gguf {

enum class Shortfall : uint8_t {
  kNone,
  kPastEnd,    // the file has no such bytes
  kNotLoaded,  // the file has them, but they are not here
};

class Cursor {
 public:
  /** `bytes` holds the file from offset `base` on, `n_bytes` of them; the file ends at offset `end`, not
     before `base`. */
  Cursor(const uint8_t* bytes, uint64_t base, uint64_t n_bytes, uint64_t end)
      : bytes_(bytes), base_(base), loaded_(std::min(n_bytes, end - base)), end_(end - base) {}

  /** How numbers and lengths are stored from here on. Little-endian and version 3 until called. */
  void set_format(uint32_t version, ByteOrder order) {
    order_ = order;
    length_bytes_ = version == 1 ? 4 : 8;
  }

  uint64_t offset() const { return base_ + position_; }
  /** To the end of the file, whether the bytes are here or not. */
  uint64_t remaining() const { return end_ - position_; }
  /** To the end of the bytes that are here. */
  uint64_t loaded() const { return loaded_ - position_; }
  ByteOrder byte_order() const { return order_; }
  /** Bytes of a count or a length: 4 in version 1, else 8. */
  uint32_t length_bytes() const { return length_bytes_; }
  Shortfall shortfall() const { return shortfall_; }
  /** After kNotLoaded: bytes from the start of the file that have to be here at least. */
  uint64_t needed() const { return base_ + needed_; }

  /** An unsigned number of sizeof(T) bytes. */
  template <class T>
  [[nodiscard]] bool read(T& value) {
    if (!has(sizeof(T))) return false;
    value = load<T>(bytes_ + position_, swaps());
    position_ += sizeof(T);
    return true;
  }

  /** A count or a length, whose width depends on the version. */
  [[nodiscard]] bool read_length(uint64_t& value) {
    if (length_bytes_ == 8) return read(value);
    uint32_t narrow;
    if (!read(narrow)) return false;
    value = narrow;
    return true;
  }

  /** The next `n_bytes` bytes. */
  [[nodiscard]] bool take(uint64_t n_bytes, const uint8_t*& bytes) {
    if (!has(n_bytes)) return false;
    bytes = bytes_ + position_;
    position_ += n_bytes;
    return true;
  }

  [[nodiscard]] bool skip(uint64_t n_bytes) {
    const uint8_t* ignored;
    return take(n_bytes, ignored);
  }

  /** A length and that many bytes. On failure the cursor is still at the length. */
  [[nodiscard]] bool take_string(const uint8_t*& bytes, uint64_t& n_bytes) {
    const uint64_t start = position_;
    if (read_length(n_bytes) && take(n_bytes, bytes)) return true;
    position_ = start;
    return false;
  }

  /** Skips `count` strings by hopping from length to length; `skipped` tells how many it passed. On failure
     the cursor is at the length of the string that did not fit. */
  [[nodiscard]] bool skip_strings(uint64_t count, uint64_t& skipped) {
    for (skipped = 0;; skipped++) {
      if (length_bytes_ == 8) {
        skipped += swaps() ? hop<uint64_t, true>(count - skipped) : hop<uint64_t, false>(count - skipped);
      } else {
        skipped += swaps() ? hop<uint32_t, true>(count - skipped) : hop<uint32_t, false>(count - skipped);
      }
      if (skipped == count) return true;
      // The hops stop without saying why: look at that string once more. (If it fits by now, the file is
      // being written to, and the hops go on.)
      const uint8_t* bytes;
      uint64_t n_bytes;
      if (!take_string(bytes, n_bytes)) return false;
    }
  }

 private:
  bool swaps() const { return order_ == ByteOrder::kBig; }

  bool has(uint64_t n_bytes) {
    if (n_bytes <= loaded()) return true;
    const bool in_file = n_bytes <= remaining();
    shortfall_ = in_file ? Shortfall::kNotLoaded : Shortfall::kPastEnd;
    if (in_file) needed_ = position_ + n_bytes;
    return false;
  }

  /** The loop that takes most of the time of opening a vocabulary: each length has to be loaded before the
     next can be found, so nothing else may stand in that chain. */
  template <class Length, bool kSwap>
  uint64_t hop(uint64_t count) {
    const uint8_t* at = bytes_ + position_;
    const uint8_t* const loaded_end = bytes_ + loaded_;
    uint64_t left = count;
    for (; left != 0; left--) {
      const size_t n_here = static_cast<size_t>(loaded_end - at);
      if (n_here < sizeof(Length)) break;
      const Length n_bytes = load<Length>(at, kSwap);
      if (n_bytes > n_here - sizeof(Length)) break;
      at += sizeof(Length) + static_cast<size_t>(n_bytes);
    }
    position_ = static_cast<uint64_t>(at - bytes_);
    return count - left;
  }

  const uint8_t* bytes_;
  uint64_t base_;
  uint64_t position_ = 0;  // this and the next three count from `base_`; position_ <= loaded_ <= end_
  uint64_t loaded_;
  uint64_t end_;
  uint64_t needed_ = 0;
  ByteOrder order_ = ByteOrder::kLittle;
  uint32_t length_bytes_ = 8;
  Shortfall shortfall_ = Shortfall::kNone;
};

}  // namespace gguf
