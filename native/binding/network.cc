// What lies between the products of a network, on plain arrays: done when the call returns. The facade checks
// what arguments mean; here is checked again that all is inside the arrays.
#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/work_now.h"
#include "network/kernels.h"
#include "work/chunked_task.h"

namespace gguf::binding {

namespace {

/** Numbers that take a thread about as long as it takes another thread to start with its share. */
constexpr uint64_t kThreadNumbers = uint64_t{32} << 10;
constexpr uint64_t kChunkNumbers = uint64_t{8} << 10;

struct Floats {
  float* data = nullptr;
  uint64_t length = 0;
};

Floats floats(const Call& call, size_t index, const char* name) {
  const TypedArray array = floats_argument(call, index, name);
  return {reinterpret_cast<float*>(array.data), array.length};
}

Floats optional_floats(const Call& call, size_t index, const char* name) {
  return call.is_undefined(index) ? Floats{} : floats(call, index, name);
}

/** Vectors of `width` numbers, and where results go, which is as long. */
struct Vectors {
  const float* x;
  float* out;
  uint64_t width, count;

  Vectors(const Call& call, size_t width_index, size_t out_index) {
    const Floats from = floats(call, 0, "x"), to = floats(call, out_index, "out");
    width = call.whole(width_index, "width");
    call.expect(width > 0 && from.length % width == 0, "x must be whole vectors");
    call.expect(to.length == from.length, "out must be as long as x");
    x = from.data;
    out = to.data;
    count = from.length / width;
  }

  /** The array of argument `index`: a number for each column, or nullptr. */
  const float* of_columns(const Call& call, size_t index, const char* name) const {
    const Floats array = optional_floats(call, index, name);
    call.expect(array.data == nullptr || array.length == width, "there must be a number for each column");
    return array.data;
  }
};

/** Does units of `unit_numbers` numbers each by several threads. */
template <class F>
napi_value run(const Call& call, uint64_t n_units, uint64_t unit_numbers, size_t threads_index, F f) {
  const uint64_t most = threads_argument(call, threads_index);
  const uint64_t n_numbers = n_units * unit_numbers;
  ChunkedTask work(n_units, std::max<uint64_t>(kChunkNumbers / unit_numbers, 1),
                   [&](uint64_t first, uint64_t count, std::vector<uint8_t>&) { f(first, count); });
  work_now(call, work, useful_threads(n_numbers / kThreadNumbers, most), nullptr);
  return nullptr;
}

/** The same for each vector. */
template <class F>
napi_value run_each(const Call& call, const Vectors& vectors, size_t threads_index, F f) {
  return run(call, vectors.count, vectors.width, threads_index, [&](uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
      f(vectors.x + i * vectors.width, vectors.out + i * vectors.width);
    }
  });
}

}  // namespace

napi_value rms_norm(const Call& call) {
  const Vectors vectors(call, 2, 4);
  const float* const weight = vectors.of_columns(call, 1, "weight");
  const float epsilon = call.number(3, "epsilon");
  const auto kernel = network_kernels().rms_norm;
  return run_each(call, vectors, 5,
                  [&](const float* x, float* out) { kernel(x, weight, vectors.width, epsilon, out); });
}

napi_value layer_norm(const Call& call) {
  const Vectors vectors(call, 3, 5);
  const float* const weight = vectors.of_columns(call, 1, "weight");
  const float* const bias = vectors.of_columns(call, 2, "bias");
  const float epsilon = call.number(4, "epsilon");
  const auto kernel = network_kernels().layer_norm;
  return run_each(call, vectors, 6,
                  [&](const float* x, float* out) { kernel(x, weight, bias, vectors.width, epsilon, out); });
}

napi_value normalize_vectors(const Call& call) {
  const Vectors vectors(call, 1, 2);
  for (uint64_t i = 0; i < vectors.count; ++i) {
    network_kernels().normalize(vectors.x + i * vectors.width, vectors.width,
                                vectors.out + i * vectors.width);
  }
  return nullptr;
}

napi_value rounding_error_of(const Call& call) {
  const Floats x = floats(call, 0, "x"), out = floats(call, 1, "out");
  call.expect(x.length % 32 == 0 && out.length == x.length, "x must be whole runs, and out as long");
  return run(call, x.length / 32, 32, 2, [&](uint64_t first, uint64_t count) {
    rounding_error(x.data + 32 * first, 32 * count, out.data + 32 * first);
  });
}

napi_value softmax_vectors(const Call& call) {
  const Vectors vectors(call, 1, 4);
  const float scale = call.number(2, "scale"), cap = call.number(3, "cap");
  const auto kernel = network_kernels().softmax;
  return run_each(call, vectors, 5,
                  [&](const float* x, float* out) { kernel(x, vectors.width, scale, cap, out); });
}

napi_value activate_numbers(const Call& call) {
  const Floats x = floats(call, 0, "x"), up = optional_floats(call, 1, "up"), out = floats(call, 3, "out");
  const auto kernel = network_kernels().activate[call.position(2, "activation", kActivations)];
  call.expect(out.length == x.length && (up.data == nullptr || up.length == x.length),
              "arrays must have the same length");
  return run(call, x.length, 1, 4, [&](uint64_t first, uint64_t count) {
    kernel(x.data + first, up.data == nullptr ? nullptr : up.data + first, count, out.data + first);
  });
}

napi_value sum_of_powers(const Call& call) {
  const Floats x = floats(call, 0, "x"), out = floats(call, 1, "out");
  call.expect(x.length > 0 && out.length == 2, "x must have numbers, and out two");
  const Powers powers = network_kernels().powers(x.data, x.length);
  out.data[0] = powers.max;
  out.data[1] = powers.sum;
  return nullptr;
}

napi_value mean_of_all_rows(const Call& call) {
  const Floats x = floats(call, 0, "x"), out = floats(call, 2, "out");
  const uint64_t width = call.whole(1, "width");
  call.expect(width > 0 && out.length == width && x.length > 0 && x.length % width == 0,
              "x must be whole rows, and out one");
  gguf::mean_of_rows(x.data, x.length / width, width, out.data);
  return nullptr;
}

napi_value add_into(const Call& call) {
  const Floats x = floats(call, 0, "x"), y = floats(call, 1, "y");
  if (x.length == 0) return nullptr;
  call.expect(y.length > 0 && x.length % y.length == 0, "x must be a multiple of y");
  for (uint64_t i = 0; i < x.length; i += y.length) network_kernels().add(x.data + i, y.data, y.length);
  return nullptr;
}

napi_value scale_into(const Call& call) {
  const Floats x = floats(call, 0, "x");
  network_kernels().scale(x.data, x.length, call.number(1, "factor"));
  return nullptr;
}

napi_value rope_heads(const Call& call) {
  const Floats x = floats(call, 0, "x"), table = floats(call, 3, "table"), out = floats(call, 6, "out");
  const uint64_t width = call.uint32(1, "headWidth"), heads = call.uint32(2, "headCount");
  const uint64_t pairs = call.uint32(4, "pairs");
  const Pairs kind = call.boolean(5, "adjacent") ? Pairs::kAdjacent : Pairs::kHalves;
  const uint64_t token = width * heads;
  call.expect(token > 0 && x.length % token == 0 && out.length == x.length, "x must be whole tokens");
  call.expect(pairs > 0 && 2 * pairs <= width, "a head must have all pairs");
  const uint64_t n_tokens = x.length / token;
  call.expect(table.length / (2 * pairs) == n_tokens, "there must be rotations for each token");
  const auto kernel = network_kernels().rotate[static_cast<int>(kind)];
  return run(call, n_tokens, token, 7, [&](uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
      const float* from = x.data + i * token;
      float* to = out.data + i * token;
      for (uint64_t h = 0; h < heads; ++h, from += width, to += width) {
        kernel(from, pairs, table.data + i * 2 * pairs, to);
        if (to != from && width > 2 * pairs) {
          std::memmove(to + 2 * pairs, from + 2 * pairs, static_cast<size_t>(width - 2 * pairs) * sizeof *to);
        }
      }
    }
  });
}

}  // namespace gguf::binding
