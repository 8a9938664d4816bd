// The same set in the encoding of AVX-512, for processors that have the instruction in no other.
#define GGUF_EVEX_VNNI
#include "dequant/isa/avx2_vnni.cc"
