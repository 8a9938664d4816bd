// The limits of this machine's memory: plain stores, streaming stores, copies and plain reads, with the
// widest vectors of the processor; and of its products of bytes. The benchmarks compile this with the
// system's compiler and call it in their own process.
//
// Every function works on `threads` threads, each on its own part of the memory, and does the work `times`
// times. Lengths are multiples of 4096 bytes; any address is allowed. If `threads` is 1, the calling thread
// does the work.
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// The loops of one width: V is a vector, of which a store writes four at a time. What is read is combined,
// and the result is used, so that the compiler cannot leave reads out.
#define LOOPS(WIDTH, TARGET, V, ONE, STORE, STREAM, FENCE, LOAD, COMBINE, REGISTER) \
  TARGET static void store_##WIDTH(char* y, const char* x, size_t bytes) {          \
    (void)x;                                                                        \
    const V one = ONE;                                                              \
    for (char* const end = y + bytes; y != end; y += 4 * sizeof(V)) {               \
      for (int i = 0; i < 4; i++) STORE(y + i * sizeof(V), one);                    \
    }                                                                               \
  }                                                                                 \
  TARGET static void stream_##WIDTH(char* y, const char* x, size_t bytes) {         \
    (void)x;                                                                        \
    const V one = ONE;                                                              \
    for (char* const end = y + bytes; y != end; y += 4 * sizeof(V)) {               \
      for (int i = 0; i < 4; i++) STREAM(y + i * sizeof(V), one);                   \
    }                                                                               \
    FENCE;                                                                          \
  }                                                                                 \
  TARGET static void read_##WIDTH(char* y, const char* x, size_t bytes) {           \
    (void)y;                                                                        \
    V a = ONE, b = a, c = a, d = a;                                                 \
    for (const char* const end = x + bytes; x != end; x += 4 * sizeof(V)) {         \
      a = COMBINE(a, LOAD(x));                                                      \
      b = COMBINE(b, LOAD(x + sizeof(V)));                                          \
      c = COMBINE(c, LOAD(x + 2 * sizeof(V)));                                      \
      d = COMBINE(d, LOAD(x + 3 * sizeof(V)));                                      \
    }                                                                               \
    a = COMBINE(COMBINE(a, b), COMBINE(c, d));                                      \
    __asm__ volatile("" : : REGISTER(a));                                           \
  }

#if defined(__x86_64__)
#include <immintrin.h>
#define FEATURES(names) __attribute__((target(names), noinline))
#define FLOATS(at) ((float*)(at))
#define STORE_512(at, v) _mm512_storeu_ps(at, v)
#define STREAM_512(at, v) _mm512_stream_ps(FLOATS(at), v)
#define XOR_512(a, b) _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)))
#define STORE_256(at, v) _mm256_storeu_ps(FLOATS(at), v)
#define STREAM_256(at, v) _mm256_stream_ps(FLOATS(at), v)
#define LOAD_256(at) _mm256_loadu_ps((const float*)(at))
LOOPS(512, FEATURES("avx512f"), __m512, _mm512_set1_ps(1), STORE_512, STREAM_512, _mm_sfence(),
      _mm512_loadu_ps, XOR_512, "v")
LOOPS(256, FEATURES("avx"), __m256, _mm256_set1_ps(1), STORE_256, STREAM_256, _mm_sfence(), LOAD_256,
      _mm256_xor_ps, "x")

#elif defined(__aarch64__)
#include <arm_neon.h>
#define STORE_128(at, v) vst1q_f32((float*)(at), v)
#define STREAM_128(at, v) __asm__ volatile("stnp %q1, %q1, [%0]" : : "r"(at), "w"(v) : "memory")
#define LOAD_128(at) vld1q_f32((const float*)(at))
// A pair of registers at a time: `one` is written twice, so every second step would write what the one before
// has written.
#define STREAM_PAIR(at, v) \
  if (i % 2 == 0) STREAM_128(at, v)
LOOPS(128, , float32x4_t, vdupq_n_f32(1), STORE_128, STREAM_PAIR, (void)0, LOAD_128, vaddq_f32, "w")
#endif

typedef void (*Work)(char* y, const char* x, size_t bytes);

// Streaming stores need aligned addresses. The bytes before the first and after the last 256 aligned bytes
// use plain stores.
static void stream(Work aligned, char* y, size_t bytes) {
  const size_t head = (size_t)(-(uintptr_t)y & 63);
  const size_t body = (bytes - head) / 256 * 256;
  memset(y, 0, head);
  aligned(y + head, 0, body);
  memset(y + head + body, 0, bytes - head - body);
}

static void copy(char* y, const char* x, size_t bytes) {
  memcpy(y, x, bytes);
}

struct Kind {
  Work store;
  Work stream;
  Work read;
};

static struct Kind best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return (struct Kind){store_512, stream_512, read_512};
  return (struct Kind){store_256, stream_256, read_256};
#elif defined(__aarch64__)
  return (struct Kind){store_128, stream_128, read_128};
#else
#error "the limits are known for x86-64 and arm64 only"
#endif
}

enum { kMaxThreads = 256 };

struct Part {
  Work work;
  int streams;
  char* y;
  const char* x;
  size_t bytes;
  int64_t times;
};

static void* run_part(void* data) {
  const struct Part part = *(const struct Part*)data;
  for (int64_t i = 0; i < part.times; i++) {
    if (part.streams) {
      stream(part.work, part.y, part.bytes);
    } else {
      part.work(part.y, part.x, part.bytes);
    }
    // The compiler must not see that the same is written again.
    __asm__ volatile("" : : "r"(part.y), "r"(part.x) : "memory");
  }
  return 0;
}

static void run(Work work, int streams, char* y, const char* x, int64_t bytes, int64_t times, int threads) {
  if (threads > kMaxThreads) threads = kMaxThreads;
  struct Part parts[kMaxThreads];
  pthread_t ids[kMaxThreads];
  int started[kMaxThreads];
  const size_t share = (size_t)bytes / 4096 / (size_t)threads * 4096;
  for (int i = 0; i < threads; i++) {
    const size_t at = share * (size_t)i;
    const size_t length = i == threads - 1 ? (size_t)bytes - at : share;
    parts[i] = (struct Part){work, streams, y + at, x + at, length, times};
  }
  for (int i = 1; i < threads; i++) started[i] = pthread_create(&ids[i], 0, run_part, &parts[i]) == 0;
  run_part(&parts[0]);
  for (int i = 1; i < threads; i++) {
    if (started[i]) {
      pthread_join(ids[i], 0);
    } else {
      run_part(&parts[i]);
    }
  }
}

void limits_store(void* y, int64_t bytes, int64_t times, int threads) {
  run(best().store, 0, y, y, bytes, times, threads);
}

void limits_stream(void* y, int64_t bytes, int64_t times, int threads) {
  run(best().stream, 1, y, y, bytes, times, threads);
}

void limits_copy(void* y, const void* x, int64_t bytes, int64_t times, int threads) {
  run(copy, 0, y, x, bytes, times, threads);
}

void limits_read(const void* x, int64_t bytes, int64_t times, int threads) {
  run(best().read, 0, (char*)x, x, bytes, times, threads);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Seconds to map fresh memory, in huge pages where the system has them, and fill it with plain stores;
// negative where there is no memory. The time to unmap it does not count.
double limits_fill(int64_t bytes, int threads) {
  const size_t huge_page = (size_t)2 << 20, mapped = (size_t)bytes + huge_page;
  const double begin = seconds_now();
  char* const pages = mmap(0, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return -1;
  char* const y = (char*)(((uintptr_t)pages + huge_page - 1) / huge_page * huge_page);
#ifdef MADV_HUGEPAGE
  madvise(y, (size_t)bytes, MADV_HUGEPAGE);
#endif
  run(best().store, 0, y, y, bytes, 1, threads);
  const double seconds = seconds_now() - begin;
  munmap(pages, mapped);
  return seconds;
}

// Twelve independent sums, more than are needed to keep every unit busy: an instruction, or two for a sum.
#define TWELVE(STEP)                                                                                   \
  STEP("0")                                                                                            \
  STEP("1") STEP("2") STEP("3") STEP("4") STEP("5") STEP("6") STEP("7") STEP("8") STEP("9") STEP("10") \
      STEP("11")
#define FOR_EACH_TIME(STEP)                                                                                \
  for (; times > 0; times--)                                                                               \
  __asm__ volatile(TWELVE(STEP)                                                                            \
                   :                                                                                       \
                   :                                                                                       \
                   : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                     "xmm10", "xmm11", "xmm12")

// Multiplies bytes `times` times with the instruction of the set with this number of peaks in
// bench/limits.ts.
void limits_products(int64_t times, int set) {
#if defined(__x86_64__)
#define VNNI_512(i) "vpdpbusd %%zmm15, %%zmm14, %%zmm" i "\n\t"
#define VNNI_256(i) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" i "\n\t"
#define EVEX_256(i) "%{evex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" i "\n\t"
#define MADD_256(i) "vpmaddubsw %%ymm15, %%ymm14, %%ymm12\n\tvpaddw %%ymm12, %%ymm" i ", %%ymm" i "\n\t"
  if (set == 0) FOR_EACH_TIME(VNNI_512);
  const int has_evex = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  if (set == 1 && has_evex) FOR_EACH_TIME(EVEX_256);
  if (set == 1 && !has_evex) FOR_EACH_TIME(VNNI_256);
  if (set == 2) FOR_EACH_TIME(MADD_256);
  __asm__ volatile("vzeroupper");
#elif defined(__aarch64__)
#define SDOT(i) ".arch_extension dotprod\n\tsdot v" i ".4s, v14.16b, v15.16b\n\t"
  for (; set == 3 && times > 0; times--) {
    __asm__ volatile(TWELVE(SDOT)
                     :
                     :
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11");
  }
#endif
}
