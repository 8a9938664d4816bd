// The order in which a kernel puts the numbers of a group.
#pragma once

#include <vector>

#include "dequant/dequant.h"

namespace gguf::test {

/** `at` of each put, recorded by a sink. */
std::vector<int> put_order(const Format& format);

}  // namespace gguf::test
