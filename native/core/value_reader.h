// Decodes one metadata value from the file's bytes, on request. The bytes may have changed since the header
// was parsed (another process may write the file), so every read is checked again.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/header.h"
#include "core/result.h"

namespace gguf {

/**
 * Receives a value in reading order. An array is announced with its length; then come its elements: all
 * numbers of an array of numbers in one call, all bools of an array of bools in one call, strings and arrays
 * one by one; then end_array. An empty array is begin_array and end_array alone. The arguments of a call are
 * valid only during that call. Returning false from any call stops the reading (the receiver keeps its own
 * error).
 */
class ValueVisitor {
 public:
  virtual ~ValueVisitor() = default;
  /** One number outside an array; `value` points to fixed_size(type) bytes in the host's byte order, aligned.
   */
  virtual bool number(ValueType type, const void* value) = 0;
  virtual bool boolean(bool value) = 0;
  /** One string, in an array or not. Not necessarily UTF-8. */
  virtual bool string(std::string_view bytes) = 0;
  virtual bool begin_array(ValueType element_type, uint64_t length) = 0;
  /** `count` numbers as stored: not aligned, in byte order `order`. copy_numbers turns them into numbers. */
  virtual bool numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order) = 0;
  /** `count` bools, a byte each: take 0 for false and anything else for true. */
  virtual bool booleans(const uint8_t* bytes, uint64_t count) = 0;
  virtual bool end_array() = 0;
};

/** Copies `count` numbers of `type`, stored in byte order `order`, to `dst` in the host's. */
void copy_numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order, void* dst);

/**
 * Hands the value of `entry` (one of `header.keys`) to `visitor`. `bytes` holds the file from offset `base`
 * on, `n_bytes` of them; only `entry.begin` to `entry.end` is looked at. kTruncated where that is not all
 * there; kInvalid where the bytes no longer are the value that the header was parsed from. Nothing where
 * `visitor` stopped.
 */
Status read_value(const KeyValue& entry, const Header& header, const uint8_t* bytes, uint64_t base,
                  uint64_t n_bytes, ValueVisitor& visitor);

}  // namespace gguf
