#include "test/native/dequant/put_order.h"

#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/numbers.h"
#include "dequant/kernels/put_blocks.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"

namespace gguf {
namespace {

struct OrderSink : TakesNumbers<OrderSink> {
  std::vector<int> order;
  void put(int at, const simd::Floats16&, const simd::Floats16&) { order.push_back(at); }
  void next_group(int) {}
  void short_group() {}
};

template <class Block>
std::vector<int> order_of() {
  const Block blocks[kGroup<Block>] = {};
  OrderSink sink;
  put_blocks(blocks, kGroup<Block>, sink);
  return sink.order;
}

}  // namespace

std::vector<int> test::put_order(const Format& format) {
  static const std::vector<int> orders[] = {
#define FORMAT(name, id, fields) order_of<Block##name>(),
#include "dequant/formats.def"
#undef FORMAT
  };
  return orders[format.index];
}

}  // namespace gguf
