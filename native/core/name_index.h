// Names to positions, in constant time: an open-addressing table of 32-bit positions over names kept
// elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/name_hash.h"

namespace gguf {

class NameIndex {
 public:
  /** Makes room for `n_names` at once. Only a hint: the table grows by itself. */
  void reserve(uint64_t n_names) {
    size_t n_slots = kFirstSlots;
    while (n_slots / 2 < n_names) n_slots *= 2;
    if (n_slots > slots_.size()) resize(n_slots);
  }

  /** Adds `name` at `position`. Returns the position that already has that name, if one has, and then changes
     nothing. `name_at(position)` must return the names inserted so far. */
  template <class NameAt>
  std::optional<uint32_t> insert(std::string_view name, uint32_t position, NameAt name_at) {
    if (n_names_ >= slots_.size() / 2) resize(slots_.empty() ? kFirstSlots : slots_.size() * 2);
    const uint32_t hash = hash_name(name);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].position_plus_one != 0; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].hash != hash) continue;
      const uint32_t other = slots_[at].position_plus_one - 1;
      if (name_at(other) == name) return other;
    }
    slots_[at] = {hash, position + 1};
    n_names_++;
    return std::nullopt;
  }

  template <class NameAt>
  std::optional<uint32_t> find(std::string_view name, NameAt name_at) const {
    if (slots_.empty()) return std::nullopt;
    const uint32_t hash = hash_name(name);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].position_plus_one != 0;
         at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].hash != hash) continue;
      const uint32_t position = slots_[at].position_plus_one - 1;
      if (name_at(position) == name) return position;
    }
    return std::nullopt;
  }

 private:
  struct Slot {
    uint32_t hash;
    uint32_t position_plus_one;  // 0: empty
  };
  static constexpr size_t kFirstSlots = 64;

  /** Moves the names to a table of `n_slots`, by the hashes that the slots hold. */
  void resize(size_t n_slots) {
    std::vector<Slot> slots(n_slots, Slot{0, 0});
    for (const Slot& slot : slots_) {
      if (slot.position_plus_one == 0) continue;
      size_t at = slot.hash & (n_slots - 1);
      while (slots[at].position_plus_one != 0) at = (at + 1) & (n_slots - 1);
      slots[at] = slot;
    }
    slots_ = std::move(slots);
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them in use
  size_t n_names_ = 0;
};

}  // namespace gguf
