// What the WebAssembly module exports, by the file that has it: memory.cc, header.cc, kernels.cc, network.cc.
// src/backend/wasm/globals.ts types it. The module imports nothing.
//
// The caller checks every argument: a wrong one can spoil the memory of this instance, and of nothing else.
// Nothing stays in the module from one call to the next but what the caller has allocated. There are no
// exceptions: where memory ends, allocate returns 0, and everything else ends in a trap, after which an
// instance is not used again.
#pragma once

#define GGUF_EXPORT(name) extern "C" __attribute__((export_name(name)))
