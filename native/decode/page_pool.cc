#include "decode/page_pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>

#include "core/checked.h"
#include "core/pages.h"
#include "decode/settings.h"

namespace gguf::page_pool {

namespace {

struct Pool {
  std::mutex mutex;
  std::multimap<size_t, uint8_t*> blocks;  // by size
  uint64_t n_bytes = 0;
};

/** Never destroyed: finalizers may still run while the process exits. */
Pool& pool() {
  static Pool* const instance = new Pool;
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

/** The smallest block that fits, unless most of it would be unused. */
std::optional<Block> take_kept(size_t size) {
  const std::lock_guard<std::mutex> lock(pool().mutex);
  const auto found = pool().blocks.lower_bound(size);
  if (found == pool().blocks.end() || found->first / 2 > size) return std::nullopt;
  const Block block{found->second, found->first};
  pool().blocks.erase(found);
  pool().n_bytes -= block.n_bytes;
  return block;
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

void give_back(Block block) {
  {
    const std::lock_guard<std::mutex> lock(pool().mutex);
    if (block.n_bytes <= limit() && pool().n_bytes <= limit() - block.n_bytes) {
      pool().blocks.emplace(block.n_bytes, block.data);
      pool().n_bytes += block.n_bytes;
      return;
    }
  }
  unmap_pages(block.data, block.n_bytes);
}

void trim() {
  std::multimap<size_t, uint8_t*> blocks;
  {
    const std::lock_guard<std::mutex> lock(pool().mutex);
    blocks.swap(pool().blocks);
    pool().n_bytes = 0;
  }
  for (const auto& [n_bytes, data] : blocks) unmap_pages(data, n_bytes);
}

uint64_t limit() {
  static const uint64_t bytes = find_limit();
  return bytes;
}

}  // namespace gguf::page_pool
