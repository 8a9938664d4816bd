// What is done where memory ends.
#pragma once

namespace gguf {

/**
 * Does what operator new does where it finds no memory: throws bad_alloc, or traps where there are no
 * exceptions, which is in WebAssembly (native/wasm).
 */
[[noreturn]] void out_of_memory();

}  // namespace gguf
