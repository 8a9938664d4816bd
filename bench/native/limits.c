// The limits of this machine's memory: plain stores, streaming stores, copies and plain reads, with the
// widest vectors of the processor. The benchmarks compile this with the system's compiler and call it in
// their own process.
//
// Every function works on `threads` threads, each on its own part of the memory, and does the work `times`
// times. Lengths are multiples of 4096 bytes; any address is allowed. If `threads` is 1, the calling thread
// does the work.
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET(features) __attribute__((target(features), noinline))

TARGET("avx512f") static void store_avx512(char* y, const char* x, size_t bytes) {
  (void)x;
  const __m512i value = _mm512_set1_epi32(0x3f800000);
  for (char* const end = y + bytes; y != end; y += 256) {
    _mm512_storeu_si512((void*)(y + 0), value);
    _mm512_storeu_si512((void*)(y + 64), value);
    _mm512_storeu_si512((void*)(y + 128), value);
    _mm512_storeu_si512((void*)(y + 192), value);
  }
}

TARGET("avx512f") static void stream_avx512(char* y, const char* x, size_t bytes) {
  (void)x;
  const __m512i value = _mm512_set1_epi32(0x3f800000);
  for (char* const end = y + bytes; y != end; y += 256) {
    _mm512_stream_si512((void*)(y + 0), value);
    _mm512_stream_si512((void*)(y + 64), value);
    _mm512_stream_si512((void*)(y + 128), value);
    _mm512_stream_si512((void*)(y + 192), value);
  }
  _mm_sfence();
}

// What is read is combined, and the result is used, so that the compiler cannot leave reads out.
TARGET("avx512f") static void read_avx512(char* y, const char* x, size_t bytes) {
  (void)y;
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (const char* const end = x + bytes; x != end; x += 256) {
    a = _mm512_add_epi32(a, _mm512_loadu_si512((const void*)(x + 0)));
    b = _mm512_add_epi32(b, _mm512_loadu_si512((const void*)(x + 64)));
    c = _mm512_add_epi32(c, _mm512_loadu_si512((const void*)(x + 128)));
    d = _mm512_add_epi32(d, _mm512_loadu_si512((const void*)(x + 192)));
  }
  a = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
  __asm__ volatile("" : : "v"(a));
}

TARGET("avx") static void store_avx(char* y, const char* x, size_t bytes) {
  (void)x;
  const __m256i value = _mm256_set1_epi32(0x3f800000);
  for (char* const end = y + bytes; y != end; y += 128) {
    _mm256_storeu_si256((__m256i*)(y + 0), value);
    _mm256_storeu_si256((__m256i*)(y + 32), value);
    _mm256_storeu_si256((__m256i*)(y + 64), value);
    _mm256_storeu_si256((__m256i*)(y + 96), value);
  }
}

TARGET("avx") static void stream_avx(char* y, const char* x, size_t bytes) {
  (void)x;
  const __m256i value = _mm256_set1_epi32(0x3f800000);
  for (char* const end = y + bytes; y != end; y += 128) {
    _mm256_stream_si256((__m256i*)(y + 0), value);
    _mm256_stream_si256((__m256i*)(y + 32), value);
    _mm256_stream_si256((__m256i*)(y + 64), value);
    _mm256_stream_si256((__m256i*)(y + 96), value);
  }
  _mm_sfence();
}

// Exclusive or, because processors without AVX2 cannot add integers in 256 bits.
TARGET("avx") static void read_avx(char* y, const char* x, size_t bytes) {
  (void)y;
  __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
  for (const char* const end = x + bytes; x != end; x += 128) {
    a = _mm256_xor_ps(a, _mm256_loadu_ps((const float*)(x + 0)));
    b = _mm256_xor_ps(b, _mm256_loadu_ps((const float*)(x + 32)));
    c = _mm256_xor_ps(c, _mm256_loadu_ps((const float*)(x + 64)));
    d = _mm256_xor_ps(d, _mm256_loadu_ps((const float*)(x + 96)));
  }
  a = _mm256_xor_ps(_mm256_xor_ps(a, b), _mm256_xor_ps(c, d));
  __asm__ volatile("" : : "x"(a));
}

static void store_sse(char* y, const char* x, size_t bytes) {
  (void)x;
  const __m128i value = _mm_set1_epi32(0x3f800000);
  for (char* const end = y + bytes; y != end; y += 64) {
    _mm_storeu_si128((__m128i*)(y + 0), value);
    _mm_storeu_si128((__m128i*)(y + 16), value);
    _mm_storeu_si128((__m128i*)(y + 32), value);
    _mm_storeu_si128((__m128i*)(y + 48), value);
  }
}

static void stream_sse(char* y, const char* x, size_t bytes) {
  (void)x;
  const __m128i value = _mm_set1_epi32(0x3f800000);
  for (char* const end = y + bytes; y != end; y += 64) {
    _mm_stream_si128((__m128i*)(y + 0), value);
    _mm_stream_si128((__m128i*)(y + 16), value);
    _mm_stream_si128((__m128i*)(y + 32), value);
    _mm_stream_si128((__m128i*)(y + 48), value);
  }
  _mm_sfence();
}

static void read_sse(char* y, const char* x, size_t bytes) {
  (void)y;
  __m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
  for (const char* const end = x + bytes; x != end; x += 64) {
    a = _mm_add_epi32(a, _mm_loadu_si128((const __m128i*)(x + 0)));
    b = _mm_add_epi32(b, _mm_loadu_si128((const __m128i*)(x + 16)));
    c = _mm_add_epi32(c, _mm_loadu_si128((const __m128i*)(x + 32)));
    d = _mm_add_epi32(d, _mm_loadu_si128((const __m128i*)(x + 48)));
  }
  a = _mm_add_epi32(_mm_add_epi32(a, b), _mm_add_epi32(c, d));
  __asm__ volatile("" : : "x"(a));
}

#elif defined(__aarch64__)
#include <arm_neon.h>

static void store_neon(char* y, const char* x, size_t bytes) {
  (void)x;
  const float32x4_t value = vdupq_n_f32(1.0f);
  for (char* const end = y + bytes; y != end; y += 64) {
    __asm__ volatile("stp %q1, %q1, [%0]\n\tstp %q1, %q1, [%0, 32]" : : "r"(y), "w"(value) : "memory");
  }
}

static void stream_neon(char* y, const char* x, size_t bytes) {
  (void)x;
  const float32x4_t value = vdupq_n_f32(1.0f);
  for (char* const end = y + bytes; y != end; y += 64) {
    __asm__ volatile("stnp %q1, %q1, [%0]\n\tstnp %q1, %q1, [%0, 32]" : : "r"(y), "w"(value) : "memory");
  }
}

// What is read is added up, and the sum is used, so that the compiler cannot leave reads out.
static void read_neon(char* y, const char* x, size_t bytes) {
  (void)y;
  uint32x4_t a = vdupq_n_u32(0), b = a, c = a, d = a;
  for (const char* const end = x + bytes; x != end; x += 64) {
    a = vaddq_u32(a, vreinterpretq_u32_u8(vld1q_u8((const uint8_t*)x)));
    b = vaddq_u32(b, vreinterpretq_u32_u8(vld1q_u8((const uint8_t*)x + 16)));
    c = vaddq_u32(c, vreinterpretq_u32_u8(vld1q_u8((const uint8_t*)x + 32)));
    d = vaddq_u32(d, vreinterpretq_u32_u8(vld1q_u8((const uint8_t*)x + 48)));
  }
  a = vaddq_u32(vaddq_u32(a, b), vaddq_u32(c, d));
  __asm__ volatile("" : : "w"(a));
}
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
  const char* name;
  Work store;
  Work stream;
  Work read;
};

static struct Kind best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    return (struct Kind){"512-bit", store_avx512, stream_avx512, read_avx512};
  if (__builtin_cpu_supports("avx")) return (struct Kind){"256-bit", store_avx, stream_avx, read_avx};
  return (struct Kind){"128-bit", store_sse, stream_sse, read_sse};
#elif defined(__aarch64__)
  return (struct Kind){"128-bit", store_neon, stream_neon, read_neon};
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

const char* limits_width(void) {
  return best().name;
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
