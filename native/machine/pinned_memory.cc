#include "machine/pinned_memory.h"

#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "core/checked.h"
#include "core/mutex.h"

namespace gguf {

namespace {

constexpr std::align_val_t kAlignment{64};

/** All pinned memory of the process by its first address. */
struct Registry {
  Mutex mutex;
  struct Entry {
    uint64_t size;
    std::weak_ptr<PinnedMemory> memory;
  };
  std::map<uintptr_t, Entry> by_address GGUF_GUARDED_BY(mutex);
};

/** Never destroyed: finalizers may still run while the process exits. */
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

page_pool::Block allocate_small(uint64_t n_bytes) {
  const auto size = to_size(n_bytes);
  return {static_cast<uint8_t*>(::operator new(size, kAlignment)), size};
}

/** Blocks of the pool have kMinBytes or more, all others fewer. */
void free_memory(page_pool::Block block) {
  if (block.n_bytes >= page_pool::kMinBytes) {
    page_pool::give_back(block);
  } else {
    ::operator delete(block.data, kAlignment);
  }
}

uintptr_t address(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

bool lies_in(uintptr_t begin, uint64_t n_bytes, uintptr_t memory, uint64_t size) {
  return begin >= memory && begin - memory <= size && n_bytes <= size - (begin - memory);
}

/** From now on it is not found. */
void forget(const void* data) {
  const MutexLock lock(registry().mutex);
  registry().by_address.erase(address(data));
}

}  // namespace

PinnedMemory::PinnedMemory(uint8_t* data, uint64_t size, std::shared_ptr<const File> file, std::string path)
    : data_(data), size_(size), file_(std::move(file)), path_(std::move(path)) {}

std::shared_ptr<PinnedMemory> PinnedMemory::registered(std::shared_ptr<PinnedMemory> memory) {
  const MutexLock lock(registry().mutex);
  registry().by_address.insert({address(memory->data()), Registry::Entry{memory->size(), memory}});
  return memory;
}

PinnedMemory::~PinnedMemory() {
  forget(data_);
  // Only now: from here on another block may get the same address.
  if (file_ == nullptr) free_memory({data_, to_size(size_)});
}

std::shared_ptr<PinnedMemory> PinnedMemory::allocate(uint64_t n_bytes) {
  return over_block(n_bytes >= page_pool::kMinBytes ? page_pool::take(n_bytes) : allocate_small(n_bytes));
}

std::shared_ptr<PinnedMemory> PinnedMemory::allocate_zeroed(uint64_t n_bytes) {
  if (n_bytes >= page_pool::kMinBytes) return over_block(page_pool::take_zeroed(n_bytes));
  const page_pool::Block block = allocate_small(n_bytes);
  std::memset(block.data, 0, block.n_bytes);
  return over_block(block);
}

std::shared_ptr<PinnedMemory> PinnedMemory::over_block(page_pool::Block block) {
  PinnedMemory* memory;
  try {
    memory = new PinnedMemory(block.data, block.n_bytes, nullptr, std::string());
  } catch (...) {
    free_memory(block);
    throw;
  }
  return registered(std::shared_ptr<PinnedMemory>(memory));
}

std::shared_ptr<PinnedMemory> PinnedMemory::of_mapping(std::shared_ptr<const File> file, std::string path) {
  uint8_t* const data = file->data();
  const uint64_t size = file->size();
  return registered(
      std::shared_ptr<PinnedMemory>(new PinnedMemory(data, size, std::move(file), std::move(path))));
}

bool PinnedMemory::has(const void* data, uint64_t n_bytes) const {
  return lies_in(address(data), n_bytes, address(data_), size_);
}

std::shared_ptr<PinnedMemory> PinnedMemory::find(const void* data, uint64_t n_bytes) {
  const MutexLock lock(registry().mutex);
  auto entry = registry().by_address.upper_bound(address(data));
  if (entry == registry().by_address.begin()) return nullptr;
  --entry;
  const Registry::Entry& found = entry->second;
  if (!lies_in(address(data), n_bytes, entry->first, found.size)) return nullptr;
  // Empty where the destructor already runs and waits for the lock.
  return found.memory.lock();
}

}  // namespace gguf
