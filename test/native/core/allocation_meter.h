// How much memory `new` has been asked for, to test that a file's claims alone do not take any.
#pragma once

#include <cstddef>

namespace gguf::test {

/** Bytes that operator new was asked for, in this test program, so far. */
size_t allocated_bytes();

}  // namespace gguf::test
