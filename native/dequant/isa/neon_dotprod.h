// The table of the set neon_dotprod, for the one that has more. Only where the compiler has the instruction.
#pragma once

#include "dequant/isa/kernel_table.h"

namespace gguf {

KernelTable neon_dotprod_table();

}  // namespace gguf
