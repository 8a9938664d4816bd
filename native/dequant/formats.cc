#include "dequant/blocks.h"
#include "dequant/dequant.h"
#include "dequant/format_fields.h"

namespace gguf {
namespace {

#define FORMAT(name, id, fields)                                   \
  static_assert(Fields(fields).block_bytes == sizeof(Block##name), \
                "the fields of " #name " are not its struct's");
#include "dequant/formats.def"
#undef FORMAT

constexpr Fields kFields[] = {
#define FORMAT(name, id, fields) Fields(fields),
#include "dequant/formats.def"
#undef FORMAT
};

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
#define FORMAT(name, id, fields) {#name, id, Block##name::kElements, sizeof(Block##name)},
#include "dequant/formats.def"
#undef FORMAT
  };
  return all;
}

const Format* find_format(uint32_t id) {
  static const std::vector<const Format*> by_id = [] {
    std::vector<const Format*> table(formats().back().id + 1);
    for (const Format& format : formats()) table[format.id] = &format;
    return table;
  }();
  return id < by_id.size() ? by_id[id] : nullptr;
}

const Fields& fields_of(const Format& format) {
  return kFields[&format - formats().data()];
}

}  // namespace gguf
