#include "dequant/cpu.h"

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#else
#include <cpuid.h>
#endif

namespace gguf {
namespace {

struct Registers {
  uint32_t eax, ebx, ecx, edx;
};

/** All zero if the processor does not know the leaf. */
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
#if defined(_MSC_VER) && !defined(__clang__)
  int highest[4], r[4];
  __cpuid(highest, 0);
  if (static_cast<uint32_t>(highest[0]) < leaf) return {};
  __cpuidex(r, static_cast<int>(leaf), static_cast<int>(subleaf));
  return {static_cast<uint32_t>(r[0]), static_cast<uint32_t>(r[1]), static_cast<uint32_t>(r[2]),
          static_cast<uint32_t>(r[3])};
#else
  Registers r{};
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
#endif
}

/** The register state that the operating system saves and restores: extended control register 0. */
uint64_t saved_state() {
#if defined(_MSC_VER) && !defined(__clang__)
  return _xgetbv(0);
#else
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // the intrinsic would need a target region
  return static_cast<uint64_t>(high) << 32 | low;
#endif
}

constexpr bool has_all(uint64_t set, uint64_t bits) {
  return (set & bits) == bits;
}

// CPUID leaf 1, ecx
constexpr uint32_t kFma = 1u << 12;
constexpr uint32_t kPopcnt = 1u << 23;
constexpr uint32_t kOsxsave = 1u << 27;  // xgetbv may be used
constexpr uint32_t kAvx = 1u << 28;
constexpr uint32_t kF16c = 1u << 29;
// CPUID leaf 7, ebx and ecx
constexpr uint32_t kAvx2 = 1u << 5;
constexpr uint32_t kAvx512f = 1u << 16;
constexpr uint32_t kAvx512dq = 1u << 17;
constexpr uint32_t kAvx512bw = 1u << 30;
constexpr uint32_t kAvx512vl = 1u << 31;
constexpr uint32_t kAvx512vbmi = 1u << 1;   // ecx
constexpr uint32_t kAvx512vnni = 1u << 11;  // ecx
// CPUID leaf 7, edx
constexpr uint32_t kAmxTile = 1u << 24;
constexpr uint32_t kAmxInt8 = 1u << 25;
// CPUID leaf 7, subleaf 1, eax
constexpr uint32_t kAvxVnni = 1u << 4;
// Extended control register 0
constexpr uint64_t kYmmState = 0x06;      // xmm, upper halves of ymm
constexpr uint64_t kZmmState = 0xe6;      // and masks, upper halves of zmm, zmm16 to zmm31
constexpr uint64_t kTileState = 0x60000;  // configuration, data

}  // namespace

bool cpu_has_avx2() {
  return has_all(cpuid(1, 0).ecx, kOsxsave | kAvx | kF16c | kFma) && has_all(saved_state(), kYmmState) &&
         has_all(cpuid(7, 0).ebx, kAvx2);
}

bool cpu_has_avx2_vnni() {
  return cpu_has_avx2() && has_all(cpuid(7, 1).eax, kAvxVnni);
}

bool cpu_has_avx2_evex_vnni_only() {
  const Registers leaf7 = cpuid(7, 0);
  return cpu_has_avx2() && !cpu_has_avx2_vnni() && has_all(saved_state(), kZmmState) &&
         has_all(leaf7.ebx, kAvx512f | kAvx512vl) && has_all(leaf7.ecx, kAvx512vnni);
}

bool cpu_has_avx512() {
  const Registers leaf7 = cpuid(7, 0);
  return cpu_has_avx2() && has_all(cpuid(1, 0).ecx, kPopcnt) && has_all(saved_state(), kZmmState) &&
         has_all(leaf7.ebx, kAvx512f | kAvx512dq | kAvx512bw | kAvx512vl) &&
         has_all(leaf7.ecx, kAvx512vbmi | kAvx512vnni);
}

bool cpu_has_amx() {
  return cpu_has_avx512() && has_all(saved_state(), kTileState) &&
         has_all(cpuid(7, 0).edx, kAmxTile | kAmxInt8);
}

bool allow_amx() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool cpu_has_neon_dotprod() {
  return false;
}
bool cpu_has_neon_i8mm() {
  return false;
}

}  // namespace gguf
#else
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

namespace gguf {
bool cpu_has_avx2() {
  return false;
}
bool cpu_has_avx2_evex_vnni_only() {
  return false;
}
bool cpu_has_avx2_vnni() {
  return false;
}
bool cpu_has_avx512() {
  return false;
}
bool cpu_has_amx() {
  return false;
}
bool allow_amx() {
  return false;
}
bool cpu_has_neon_dotprod() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;  // the compiler uses it everywhere: for Apple's processors, all of which have it
#elif defined(__linux__) && defined(__aarch64__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP, which old headers lack
  return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#elif defined(_WIN32)
  constexpr DWORD kDotProducts = 43;  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, which old headers lack
  return IsProcessorFeaturePresent(kDotProducts) != 0;
#else
  return false;
#endif
}
bool cpu_has_neon_i8mm() {
  if (!cpu_has_neon_dotprod()) return false;
#if defined(__linux__) && defined(__aarch64__)
  constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM, which old headers lack
  return (getauxval(AT_HWCAP2) & kI8mm) != 0;
#elif defined(__APPLE__)
  int has = 0;
  size_t size = sizeof has;
  return sysctlbyname("hw.optional.arm.FEAT_I8MM", &has, &size, nullptr, 0) == 0 && has != 0;
#elif defined(_WIN32)
  constexpr DWORD kMatrixProducts = 66;  // PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE, likewise
  return IsProcessorFeaturePresent(kMatrixProducts) != 0;
#else
  return false;
#endif
}
}  // namespace gguf
#endif
