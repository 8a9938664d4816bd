#include "network/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "dequant/dequant.h"
#include "dequant/half.h"
#include "quant/quantize.h"

namespace gguf {

namespace {

constexpr uint64_t kLine = 64;

constexpr uint64_t round_up_to(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

bool has_scales(const CacheShape& shape) {
  return shape.format.block_elements > 1;
}

/** Memory of whole cache lines, zeroed. */
struct Lines {
  struct alignas(kLine) Line {
    uint8_t bytes[kLine];
  };
  std::vector<Line> lines;

  explicit Lines(uint64_t n_bytes) : lines(to_size(round_up_to(n_bytes, kLine) / kLine)) {}
  uint8_t* data() { return lines.data()->bytes; }
};

constexpr uint64_t kKeyStep = KvCache::kGroup;  // from a number of a key to the next, in the page

/** Calls `f` with a number of so many bytes: steps of constant size take a tenth of the time. */
template <class F>
void with_number(uint64_t n_bytes, F f) {
  if (n_bytes == 4) return f(uint32_t());
  if (n_bytes == 2) return f(uint16_t());
  f(uint8_t());
}

/** Copies `n` numbers, with steps from each to the next. */
void copy_numbers(const uint8_t* from, uint64_t from_step, uint64_t n, uint64_t n_bytes, uint8_t* to,
                  uint64_t to_step) {
  with_number(n_bytes, [=](auto number) {
    for (uint64_t i = 0; i < n; ++i) {
      std::memcpy(&number, from + i * from_step * sizeof number, sizeof number);
      std::memcpy(to + i * to_step * sizeof number, &number, sizeof number);
    }
  });
}

/** A scale and codes, as Q8_0 stores them. */
struct Block {
  uint8_t scale[2];
  uint8_t codes[KvCache::kRun];
};

}  // namespace

struct KvCache::Page : Lines {
  using Lines::Lines;
};

KvCache::Layout KvCache::layout_of(const CacheShape& shape) {
  const uint64_t number = has_scales(shape) ? 1 : shape.format.block_bytes;
  const uint64_t runs = has_scales(shape) ? sizeof(float) : 0;
  Layout layout;
  layout.key_scales = round_up_to(kPositions * shape.key_width * number, kLine);
  layout.values = layout.key_scales + round_up_to(kPositions * (shape.key_width / kRun) * runs, kLine);
  layout.value_scales =
      layout.values + round_up_to(kPositions * round_up_to(shape.value_width, kGroup) * number, kLine);
  layout.end = layout.value_scales + round_up_to(kPositions * (shape.value_width / kRun) * runs, kLine);
  return layout;
}

uint64_t KvCache::page_bytes(const CacheShape& shape) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (shape.key_width > kMost / kPositions || shape.value_width > kMost / kPositions) return 0;
  const uint64_t head_bytes = layout_of(shape).end;
  return head_bytes > 0 && shape.heads <= kMost / head_bytes ? shape.heads * head_bytes : 0;
}

KvCache::KvCache(const CacheShape& shape)
    : shape_(shape),
      layout_(layout_of(shape)),
      number_bytes_(has_scales(shape) ? 1 : shape.format.block_bytes) {}

PageHead KvCache::head_of(uint64_t page, uint64_t head) const {
  const uint8_t* const start = pages_[to_size(page)]->data() + head * layout_.end;
  return {start, reinterpret_cast<const float*>(start + layout_.key_scales), start + layout_.values,
          reinterpret_cast<const float*>(start + layout_.value_scales)};
}

uint8_t* KvCache::writable_head(uint64_t position, uint64_t head) {
  std::shared_ptr<Page>& page = pages_[to_size(position / kPositions)];
  if (page.use_count() > 1) page = std::make_shared<Page>(*page);
  return page->data() + head * layout_.end;
}

Status KvCache::append(const float* keys, const float* values, uint64_t n_tokens) {
  if (shape_.format.block_bytes == sizeof(float)) {
    restore(reinterpret_cast<const uint8_t*>(keys), reinterpret_cast<const uint8_t*>(values), n_tokens);
    return std::nullopt;
  }
  std::vector<uint8_t> scratch, blocks[2];
  const auto encode = [&](const char* name, const float* x, uint64_t width,
                          std::vector<uint8_t>& to) -> Status {
    const uint64_t rows = n_tokens * shape_.heads;
    to.resize(to_size(rows * shape_.row_bytes(width)));
    if (to.empty()) return std::nullopt;
    const uint64_t n_blocks = rows * width / shape_.format.block_elements;
    if (!has_scales(shape_)) {
      dequantize(*find_format(0), Out::kFloat16, Store::kPlain, false, reinterpret_cast<const uint8_t*>(x),
                 n_blocks, to.data());
      return std::nullopt;
    }
    RowEncoding encoding;
    encoding.format = shape_.format;
    encoding.columns = width;
    Status failure = quantize_rows(encoding, 0, n_blocks, x, to.data(), scratch);
    if (failure) failure->detail = std::string(name) + ": " + failure->detail;
    return failure;
  };
  if (Status failure = encode("keys", keys, shape_.key_width, blocks[0])) return failure;
  if (Status failure = encode("values", values, shape_.value_width, blocks[1])) return failure;
  restore(blocks[0].data(), blocks[1].data(), n_tokens);
  return std::nullopt;
}

void KvCache::restore(const uint8_t* keys, const uint8_t* values, uint64_t n_tokens) {
  const uint64_t end = length_ + n_tokens;
  while (pages_.size() * kPositions < end) pages_.push_back(std::make_shared<Page>(page_bytes(shape_)));
  const uint64_t key_bytes = shape_.row_bytes(shape_.key_width);
  const uint64_t value_bytes = shape_.row_bytes(shape_.value_width);
  for (uint64_t position = length_; position < end; ++position) {
    const uint64_t at = position % kPositions, group = at / kGroup, lane = at % kGroup;
    for (uint64_t head = 0; head < shape_.heads; ++head, keys += key_bytes, values += value_bytes) {
      uint8_t* const start = writable_head(position, head);
      uint8_t* const key = start + (group * shape_.key_width * kGroup + lane) * number_bytes_;
      uint8_t* const value = start + layout_.values + at * value_stride() * number_bytes_;
      if (!has_scales(shape_)) {
        copy_numbers(keys, 1, shape_.key_width, number_bytes_, key, kKeyStep);
        std::memcpy(value, values, to_size(value_bytes));
        continue;
      }
      const uint64_t key_runs = shape_.key_width / kRun, value_runs = shape_.value_width / kRun;
      float* const key_scales =
          reinterpret_cast<float*>(start + layout_.key_scales) + group * key_runs * kGroup + lane;
      float* const value_scales = reinterpret_cast<float*>(start + layout_.value_scales) + at * value_runs;
      for (uint64_t run = 0; run < key_runs; ++run) {
        Block block;
        std::memcpy(&block, keys + run * sizeof block, sizeof block);
        key_scales[run * kGroup] = half_to_float(static_cast<uint16_t>(block.scale[0] | block.scale[1] << 8));
        copy_numbers(block.codes, 1, kRun, 1, key + run * kRun * kKeyStep, kKeyStep);
      }
      for (uint64_t run = 0; run < value_runs; ++run) {
        Block block;
        std::memcpy(&block, values + run * sizeof block, sizeof block);
        value_scales[run] = half_to_float(static_cast<uint16_t>(block.scale[0] | block.scale[1] << 8));
        std::memcpy(value + run * kRun, block.codes, kRun);
      }
    }
  }
  length_ = end;
}

void KvCache::read(uint64_t first, uint64_t n_tokens, uint8_t* keys, uint8_t* values) const {
  const uint64_t key_bytes = shape_.row_bytes(shape_.key_width);
  const uint64_t value_bytes = shape_.row_bytes(shape_.value_width);
  const auto put_scale = [](float scale, uint8_t* to) {
    const uint16_t bits = float_to_half(scale);
    to[0] = static_cast<uint8_t>(bits);
    to[1] = static_cast<uint8_t>(bits >> 8);
  };
  for (uint64_t position = first; position < first + n_tokens; ++position) {
    const uint64_t at = position % kPositions, group = at / kGroup, lane = at % kGroup;
    for (uint64_t i = 0; i < shape_.heads; ++i, keys += key_bytes, values += value_bytes) {
      const PageHead head = head_of(position / kPositions, i);
      const uint8_t* const key = head.keys + (group * shape_.key_width * kGroup + lane) * number_bytes_;
      const uint8_t* const value = head.values + at * value_stride() * number_bytes_;
      if (!has_scales(shape_)) {
        copy_numbers(key, kKeyStep, shape_.key_width, number_bytes_, keys, 1);
        std::memcpy(values, value, to_size(value_bytes));
        continue;
      }
      const uint64_t key_runs = shape_.key_width / kRun, value_runs = shape_.value_width / kRun;
      for (uint64_t run = 0; run < key_runs; ++run) {
        uint8_t* const block = keys + run * sizeof(Block);
        put_scale(head.key_scales[(group * key_runs + run) * kGroup + lane], block);
        copy_numbers(key + run * kRun * kKeyStep, kKeyStep, kRun, 1, block + 2, 1);
      }
      for (uint64_t run = 0; run < value_runs; ++run) {
        uint8_t* const block = values + run * sizeof(Block);
        put_scale(head.value_scales[at * value_runs + run], block);
        std::memcpy(block + 2, value + run * kRun, kRun);
      }
    }
  }
}

void KvCache::truncate(uint64_t length) {
  length_ = std::min(length_, length);
  // The first page stays: a cache that is used for one text after the other takes no new memory for each.
  const uint64_t kept = std::max<uint64_t>(round_up_to(length_, kPositions) / kPositions, 1);
  pages_.resize(to_size(std::min<uint64_t>(pages_.size(), kept)));
}

}  // namespace gguf
