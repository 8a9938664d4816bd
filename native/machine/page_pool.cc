#include "machine/page_pool.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/mutex.h"
#include "core/pages.h"
#include "machine/settings.h"

namespace gguf::page_pool {

namespace {

/** A block that is kept, noted in its own first bytes: keeping one takes no memory, which destructors that
 * give blocks back could not do without. */
struct Kept {
  Kept* next;  // of the same size or larger
  size_t n_bytes;
};

struct Pool {
  Mutex mutex;
  Kept* smallest GGUF_GUARDED_BY(mutex) = nullptr;
  uint64_t n_bytes GGUF_GUARDED_BY(mutex) = 0;  // of all
};

/** Never destroyed: finalizers may still run while the process exits. Needs no memory either. */
Pool& pool() {
  alignas(Pool) static unsigned char place[sizeof(Pool)];
  static Pool* const instance = new (place) Pool;
  return *instance;
}

uint64_t find_limit() {
  if (const auto setting = megabytes_setting("GGUF_NATIVE_POOL_MB")) return *setting;
  constexpr uint64_t kMost = uint64_t{1} << 30;
  const uint64_t share = physical_memory() / 8;
  return share == 0 ? kMost : std::min(share, kMost);
}

uint8_t* map_or_trim(size_t n_bytes) {
  uint8_t* pages = map_pages(n_bytes);
  if (pages == nullptr) {
    trim();
    pages = map_pages(n_bytes);
  }
  if (pages == nullptr) throw std::bad_alloc();
  return pages;
}

size_t whole_huge_pages(uint64_t n_bytes) {
  if (n_bytes > SIZE_MAX - kHugePageBytes) throw std::bad_alloc();
  return to_size((std::max<uint64_t>(n_bytes, 1) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes);
}

/** The link to the first kept block of `size` or more. */
Kept** first_of(size_t size) GGUF_REQUIRES(pool().mutex) {
  Kept** place = &pool().smallest;
  while (*place != nullptr && (*place)->n_bytes < size) place = &(*place)->next;
  return place;
}

/** The smallest block that fits, unless most of it would be unused. */
std::optional<Block> take_kept(size_t size) {
  const MutexLock lock(pool().mutex);
  Kept** const place = first_of(size);
  Kept* const kept = *place;
  if (kept == nullptr || kept->n_bytes / 2 > size) return std::nullopt;
  *place = kept->next;
  pool().n_bytes -= kept->n_bytes;
  return Block{reinterpret_cast<uint8_t*>(kept), kept->n_bytes};
}

}  // namespace

Block take(uint64_t n_bytes) {
  const size_t size = whole_huge_pages(n_bytes);
  if (const auto kept = take_kept(size)) return *kept;
  return {map_or_trim(size), size};
}

Block take_zeroed(uint64_t n_bytes) {
  const size_t size = whole_huge_pages(n_bytes);
  if (const auto kept = take_kept(size)) {
    std::memset(kept->data, 0, to_size(n_bytes));
    return *kept;
  }
  return {map_or_trim(size), size};
}

void give_back(Block block) noexcept {
  {
    const MutexLock lock(pool().mutex);
    if (block.n_bytes <= limit() && pool().n_bytes <= limit() - block.n_bytes) {
      Kept** const place = first_of(block.n_bytes);
      *place = new (block.data) Kept{*place, block.n_bytes};
      pool().n_bytes += block.n_bytes;
      return;
    }
  }
  unmap_pages(block.data, block.n_bytes);
}

void trim() noexcept {
  Kept* kept;
  {
    const MutexLock lock(pool().mutex);
    kept = std::exchange(pool().smallest, nullptr);
    pool().n_bytes = 0;
  }
  while (kept != nullptr) {
    const Kept its = *kept;
    unmap_pages(reinterpret_cast<uint8_t*>(kept), its.n_bytes);
    kept = its.next;
  }
}

uint64_t limit() {
  static const uint64_t bytes = find_limit();
  return bytes;
}

}  // namespace gguf::page_pool
