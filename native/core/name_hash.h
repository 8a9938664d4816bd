// The hash of names.
#pragma once

#include <cstdint>
#include <string_view>

namespace gguf {

/**
 * Differs from process to process: the keys of the hash are drawn at random once. So nobody can
 * prepare a file whose names all collide, which would make opening it quadratic.
 */
uint32_t hash_name(std::string_view name);

}  // namespace gguf
