// Reads a GGUF header, checking every rule of the format.
#pragma once

#include "core/header.h"
#include "core/result.h"

namespace gguf {

struct ParseOptions {
  /** Accept tensor data that is missing or cut off. Tensors may then lie past the end of the file: check
   * before use. */
  bool partial = false;
  /** Called now and then while a long header is read, with a range of bytes that are not needed any more, in
   * order: their pages need not stay in memory. May be nullptr. */
  void (*passed)(const void* context, uint64_t begin, uint64_t end) = nullptr;
  const void* passed_context = nullptr;
};

/** Elements and bytes per block of a tensor type; block_bytes 0 for a type that is not known. */
struct TypeSize {
  uint32_t block_elements = 0;
  uint32_t block_bytes = 0;
};
using TypeSizeOf = TypeSize (*)(uint32_t type);

/** What parse_header returns. */
struct ParseOutcome {
  Result<Header> result;
  bool need_more = false;
  uint64_t n_needed = 0;  // then: bytes from the start of the file, at least
};

/**
 * Parses the header of a GGUF file of `file_size` bytes, of which the first `n_bytes` are at `bytes`. Where
 * the header reaches past `n_bytes` but not past `file_size`, returns a kTruncated error with `need_more`
 * set: call again with more bytes (twice as many, or as many as `n_needed` says: then the total time stays
 * linear). Time and memory are linear in the header; tensor data is not touched. Never throws.
 */
ParseOutcome parse_header(const uint8_t* bytes, uint64_t n_bytes, uint64_t file_size, TypeSizeOf type_size,
                          ParseOptions options) noexcept;
/** The same, but where memory ends it does as out_of_memory. */
ParseOutcome parse_header_or_throw(const uint8_t* bytes, uint64_t n_bytes, uint64_t file_size,
                                   TypeSizeOf type_size, ParseOptions options);

}  // namespace gguf
