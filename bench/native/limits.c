// The limits of this machine's memory: plain stores, streaming stores and copies, with the widest vectors of
// the processor. The benchmarks compile this with the system's compiler and call it in their own process.
//
// Every function works on `threads` threads, each on its own part of the memory, and does the work `times`
// times. Lengths are multiples of 4096 bytes; any address is allowed. If `threads` is 1, the calling thread
// does the work.
#include <pthread.h>
#include <stdint.h>
#include <string.h>

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
#endif

typedef void (*Work)(char* y, const char* x, size_t bytes);

// Streaming stores need aligned addresses. The bytes before the first and after the last 256 aligned bytes use
// plain stores.
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
};

static struct Kind best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return (struct Kind){"512-bit", store_avx512, stream_avx512};
  if (__builtin_cpu_supports("avx")) return (struct Kind){"256-bit", store_avx, stream_avx};
  return (struct Kind){"128-bit", store_sse, stream_sse};
#elif defined(__aarch64__)
  return (struct Kind){"128-bit", store_neon, stream_neon};
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
