#include "dequant/formats.h"

#include "dequant/blocks.h"

namespace gguf {
namespace {

constexpr std::array<Format, kFormatCount> kFormats = {{
#define FORMAT(name, id, fields) {#name, id, Block##name::kElements, sizeof(Block##name), k##name},
#include "dequant/formats.def"
#undef FORMAT
}};

constexpr bool ids_ascend() {
  for (size_t i = 1; i < kFormats.size(); ++i) {
    if (kFormats[i - 1].id >= kFormats[i].id) return false;
  }
  return true;
}
static_assert(ids_ascend(), "formats.def must be in the order of the ids, without duplicates");

/** The position of each id in kFormats; kFormatCount if there is no such format. */
constexpr auto kIndexOfId = [] {
  std::array<FormatIndex, kFormats[kFormatCount - 1].id + 1> table{};
  for (size_t id = 0; id < table.size(); ++id) table[id] = kFormatCount;
  for (const Format& format : kFormats) table[format.id] = format.index;
  return table;
}();

}  // namespace

const std::array<Format, kFormatCount>& formats() {
  return kFormats;
}

const Format* find_format(uint32_t id) {
  if (id >= kIndexOfId.size() || kIndexOfId[id] == kFormatCount) return nullptr;
  return &kFormats[kIndexOfId[id]];
}

}  // namespace gguf
