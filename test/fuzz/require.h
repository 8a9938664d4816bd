// How a fuzz target says that something is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace gguf::fuzz {

[[noreturn]] inline void fail(const char* file, int line, const char* rule) {
  std::fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, rule);
  std::abort();  // which libFuzzer reports with the input
}

}  // namespace gguf::fuzz

#define FUZZ_REQUIRE(rule) ((rule) ? static_cast<void>(0) : gguf::fuzz::fail(__FILE__, __LINE__, #rule))
