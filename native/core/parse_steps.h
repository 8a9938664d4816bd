// The steps of parse_header, each in its own file, in the order in which they run. Each returns false where
// it fails; `scan` has the error.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/header.h"
#include "core/parse.h"
#include "core/scan.h"

namespace gguf {

/** The key that sets Header::alignment. */
constexpr const char* kAlignmentKey = "general.alignment";

/** Keys and values; fills keys, key_index and alignment. */
bool parse_metadata(Scan& scan, uint64_t n_keys, Header& header);

/** The tensor directory; fills tensors and tensor_index. Offsets are as stored: from the start of the tensor
 * data. */
bool parse_tensors(Scan& scan, uint64_t n_tensors, TypeSizeOf type_size, Header& header);

/** Where the data lies; fills data_offset and turns offsets into ones from the start of the file. The scan is
   at the end of the tensor directory. */
bool place_tensors(Scan& scan, bool partial, Header& header);

/** Reads the name of entry `index` of a list of `kind` ("key", "tensor"), from `min_bytes` to `max_bytes`
   long, copies it to `names` and makes it what errors are about. Adds `index` to `replaced` where the name,
   decoded, holds U+FFFD. */
bool parse_name(Scan& scan, const char* kind, uint32_t index, uint64_t min_bytes, uint64_t max_bytes,
                NameStore& names, std::vector<uint32_t>& replaced, std::string_view& name);

/** The fewest bytes that a key with its value takes in the file. */
inline uint64_t smallest_key_bytes(const Cursor& in) {
  return in.length_bytes() + 1 + sizeof(uint32_t) + 1;
}
/** The fewest bytes that the directory entry of a tensor takes: no name, no dims. */
inline uint64_t smallest_tensor_bytes(const Cursor& in) {
  return in.length_bytes() + sizeof(uint32_t) + sizeof(uint32_t) + sizeof(uint64_t);
}

}  // namespace gguf
