// Every limit that the core sets on a file, each with its reason. What the format itself limits (four dims,
// counts that fit in the file) is checked where it is read; these are the limits of this library.
#pragma once

#include <cstdint>

namespace gguf {

/** The longest key, as the format's documentation has it. An empty key is refused too. */
constexpr uint64_t kMaxKeyBytes = 65535;

/** The longest tensor name. The format sets none (ggml's own is 63 bytes); with this, a sparse
   file that claims gigabytes for a few bytes on disk does not have them copied. */
constexpr uint64_t kMaxTensorNameBytes = uint64_t{1} << 20;

/** How deep arrays may lie in arrays; one that holds no array counts 1. Known models have none deeper than 1.
   The core itself walks them without recursion, but what is built from them (JSON, structured clones,
   comparisons) is recursive, and must not exhaust a stack. */
constexpr uint32_t kMaxArrayDepth = 64;

/** Most array elements, in the whole header, that have to be looked at one by one: strings, bools and arrays.
   The largest known vocabularies have 500,000. A sparse file can claim a hundred billion empty strings, all
   present and all zero, for a few bytes on disk; walking these would take minutes, where this many take a
   second or two. Arrays of numbers are stepped over whole and have no limit but the file's end. */
constexpr uint64_t kMaxWalkedElements = uint64_t{1} << 26;

/** Bytes of a header that stay in memory behind the one that is being read, at most: a sparse file can hold
   strings over gigabytes. Most headers are shorter. */
constexpr uint64_t kPassedBytes = uint64_t{16} << 20;

/** Most keys, and most tensors, of a file: they are numbered in 32 bits, with one number to spare. The
   largest known models have some 10,000 tensors. */
constexpr uint64_t kMaxEntries = uint64_t{1} << 28;

/** Most keys, and most tensors, whose names hold U+FFFD once they are decoded, because they are not UTF-8 or
   hold it. Such names are kept in JavaScript, to give each a name of its own; all others stay in the index.
 */
constexpr uint64_t kMaxReplacedNames = uint64_t{1} << 20;

/** Entries that memory is set aside for because the file says so; beyond it, memory grows with what is really
   read. As above, a sparse file can claim any number. */
constexpr uint64_t kMaxTrustedEntries = uint64_t{1} << 16;

/** Largest content of a file that reports size 0 but has content (as those in /proc do), which is read into
   memory. Enough to say what it is; such a file is rarely a model, and may never end. */
constexpr uint64_t kMaxUnsizedBytes = uint64_t{64} << 20;

}  // namespace gguf
