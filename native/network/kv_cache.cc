#include "network/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "dequant/dequant.h"
#include "dequant/half.h"
#include "network/kernels.h"
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
  std::vector<uint8_t> scratch, blocks[2];
  const auto encode = [&](const char* name, const float* x, uint64_t width,
                          std::vector<uint8_t>& to) -> Status {
    const uint64_t rows = n_tokens * shape_.heads;
    to.resize(to_size(rows * shape_.row_bytes(width)));
    if (to.empty()) return std::nullopt;
    const uint64_t n_blocks = rows * width / shape_.format.block_elements;
    if (!has_scales(shape_)) {
      const Out out = shape_.format.block_bytes == 2 ? Out::kFloat16 : Out::kFloat32;
      dequantize(*find_format(0), out, Store::kPlain, false, reinterpret_cast<const uint8_t*>(x), n_blocks,
                 to.data());
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
        for (uint64_t w = 0; w < shape_.key_width; ++w) {
          std::memcpy(key + w * kGroup * number_bytes_, keys + w * number_bytes_, to_size(number_bytes_));
        }
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
        for (uint64_t i = 0; i < kRun; ++i) key[(run * kRun + i) * kGroup] = block.codes[i];
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
        for (uint64_t w = 0; w < shape_.key_width; ++w) {
          std::memcpy(keys + w * number_bytes_, key + w * kGroup * number_bytes_, to_size(number_bytes_));
        }
        std::memcpy(values, value, to_size(value_bytes));
        continue;
      }
      const uint64_t key_runs = shape_.key_width / kRun, value_runs = shape_.value_width / kRun;
      for (uint64_t run = 0; run < key_runs; ++run) {
        uint8_t* const block = keys + run * sizeof(Block);
        put_scale(head.key_scales[(group * key_runs + run) * kGroup + lane], block);
        for (uint64_t k = 0; k < kRun; ++k) block[2 + k] = key[(run * kRun + k) * kGroup];
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

// ---- attention

namespace {

/** Scores that a unit keeps: what stays in the second-level cache. */
constexpr uint64_t kScores = uint64_t{1} << 16;
constexpr uint64_t kMostTokens = 32;

}  // namespace

uint64_t Attention::tokens_at_once(const KvCache& cache) const {
  const uint64_t group = heads / cache.shape().heads;
  return std::clamp<uint64_t>(kScores / (group * (cache.length() + 1)), 1, kMostTokens);
}

uint64_t Attention::n_units(const KvCache& cache) const {
  const uint64_t at_once = tokens_at_once(cache);
  return cache.shape().heads * ((n_tokens + at_once - 1) / at_once);
}

uint64_t Attention::n_multiplications(const KvCache& cache) const {
  const CacheShape& shape = cache.shape();
  uint64_t n;
  if (!multiply_below(UINT64_MAX, n_tokens * heads, cache.length(), n) ||
      !multiply_below(UINT64_MAX, n, shape.key_width + shape.value_width, n)) {
    return UINT64_MAX;
  }
  return n;
}

void Attention::do_unit(const KvCache& cache, uint64_t unit, std::vector<uint8_t>& scratch) const {
  const CacheShape& shape = cache.shape();
  const uint64_t at_once = tokens_at_once(cache), group = heads / shape.heads;
  const uint64_t head = unit % shape.heads, first_token = unit / shape.heads * at_once;
  const uint64_t n = std::min(at_once, n_tokens - first_token);
  std::vector<Query> list;
  list.reserve(to_size(n * group));
  for (uint64_t i = first_token; i < first_token + n; ++i) {
    const uint64_t position = cache.length() - n_tokens + i;
    const uint64_t first = window == 0 || position < window ? 0 : position - window + 1;
    const uint64_t last = causal ? position : cache.length() - 1;
    for (uint64_t h = head * group; h < (head + 1) * group; ++h) {
      list.push_back({queries + (i * heads + h) * shape.key_width, out + (i * heads + h) * shape.value_width,
                      first, last, sinks == nullptr ? nullptr : sinks + h});
    }
  }
  Queries unit_queries{list.data(), list.size(), scale, cap, nullptr};
  const uint64_t n_floats = attention_scratch_floats(cache, unit_queries);
  const size_t n_bytes = to_size(n_floats * sizeof(float)) + kLine;
  if (scratch.size() < n_bytes) scratch.resize(n_bytes);
  const size_t misalignment = reinterpret_cast<uintptr_t>(scratch.data()) % kLine;
  unit_queries.scratch = reinterpret_cast<float*>(scratch.data() + (kLine - misalignment) % kLine);
  network_kernels().attend(cache, head, unit_queries);
}

}  // namespace gguf
