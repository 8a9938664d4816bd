// Makes one GGUF file from another that is nearly as valid: fields set to values at the edges, entries
// doubled, moved, dropped and made anew, strings and arrays grown and cut with their lengths in step, byte
// order turned. Bytes mutated blindly hardly ever get past the first wrong length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "test/fuzz/random.h"

namespace gguf::fuzz {

/** A small file with random keys and tensors, valid as far as it goes. */
std::vector<uint8_t> generate_gguf(Random& random);

/** Changes a few things in `file`, which may be any bytes. */
void mutate_gguf(std::vector<uint8_t>& file, Random& random);

/**
 * The body of LLVMFuzzerCustomMutator for an input that is `n_options` bytes, then a file: leaves some inputs
 * to libFuzzer's own mutations, which know what the code compares with.
 */
size_t mutate_input(uint8_t* data, size_t size, size_t max_size, unsigned seed, size_t n_options);

}  // namespace gguf::fuzz
