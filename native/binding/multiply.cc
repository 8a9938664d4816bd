// Products as JavaScript asks for them: at once, or as a job.
#include <deque>
#include <vector>

#include "binding/entry_points.h"
#include "binding/file_handle.h"
#include "binding/product_request.h"
#include "binding/run.h"

namespace gguf::binding {

napi_value multiply_sync(const Call& call) {
  return run_now(call, ProductRequest::of_tensor(call), 8);
}

// Each product has an array for its results, so that no JavaScript runs between looking up the first and the
// last.
napi_value multiply_all_sync(const Call& call) {
  const uint32_t n = call.array_length(0, "products");
  std::deque<Call> calls;
  std::vector<ProductRequest> requests;
  uint64_t n_multiplications = 0;
  for (uint32_t i = 0; i < n; ++i) {
    napi_value arguments;
    check(call.env(), napi_get_element(call.env(), call[0], i, &arguments));
    requests.push_back(ProductRequest::of_tensor(calls.emplace_back(call, arguments)));
    const uint64_t more = requests.back().shape.n_multiplications();
    n_multiplications = more > UINT64_MAX - n_multiplications ? UINT64_MAX : n_multiplications + more;
  }
  const int threads = useful_product_threads(n_multiplications, threads_argument(call, 1));
  // From here on no JavaScript runs. All vectors are packed before anything is written: outputs may overlap
  // them.
  std::deque<ChunkedProduct> products;
  std::vector<const ChunkedProduct*> last(formats().size());  // of each format: its vectors are packed
  for (uint32_t i = 0; i < n; ++i) {
    const ProductRequest& request = requests[i];
    const auto output = static_cast<float*>(request.find_output(calls[i]).data);
    const ChunkedProduct*& of_format = last[request.shape.format.index];
    of_format = &products.emplace_back(request.locate(calls[i]), request.shape, request.vectors(calls[i]),
                                       threads, output, of_format);
  }
  // A thread that finds nothing more to do in one goes on with the next, while others finish.
  on_threads(call, threads, [&](std::vector<uint8_t>& scratch) {
    for (ChunkedProduct& product : products) product.work(scratch, never);
  });
  for (uint32_t i = 0; i < n; ++i) {
    if (const Status& failure = products[i].failure()) {
      throw_error(call.environment(), *failure, requests[i].path());
    }
  }
  return nullptr;
}

namespace {

class PreparationRequest : public BlockRequest {
 public:
  /** Of file and tensor. */
  explicit PreparationRequest(const Call& call) {
    const TensorInfo& tensor = take_tensor(call);
    shape_.format = format();
    shape_.columns = tensor.shape[0];
    shape_.n_vectors = ChunkedPreparation::kVectors;
    shape_.activations = Activations::kInt8;
    // Blocks that are numbers have no tiles of levels.
    const bool has_tiles = shape_.format.block_elements > 1 && shape_.columns > 0;
    if (has_tiles && FileHandle::of(call, 0).prepared(call, 1) == nullptr) shape_.n_rows = tensor.n_rows();
    take_bytes(0, shape_.n_rows * shape_.row_bytes());
  }

  /** Its result is empty. */
  Output find_or_make_output(const Call& call) const {
    return new_output(call.environment(), Out::kFloat32, 0);
  }
  uint64_t output_bytes() const { return 0; }
  bool is_small() const { return false; }
  ChunkedPreparation make_work(const Call& call, BlockSource source, int threads, void*) const {
    const std::shared_ptr<PreparedRows> rows = ChunkedPreparation::memory_for(shape_);
    FileHandle& file = FileHandle::of(call, 0);
    if (shape_.n_rows > 0) file.keep_prepared(call, 1, rows);
    // Pages of a mapping would stay in memory, though nobody needs them. But a view may have been written
    // to.
    if (source.mapped_bytes > 0 && !file.has_view(call, 1)) {
      source.data = nullptr;
      source.mapped_bytes = 0;
    }
    return ChunkedPreparation(source, shape_, threads, rows);
  }

 private:
  ProductShape shape_;
};

}  // namespace

napi_value prepare_async(const Call& call) {
  return run_later(call, PreparationRequest(call), 2);
}

napi_value multiply_async(const Call& call) {
  return run_later(call, ProductRequest::of_tensor(call), 8);
}

napi_value multiply_blocks_sync(const Call& call) {
  return run_now(call, ProductRequest::of_bytes(call, false), 6);
}

napi_value multiply_blocks_async(const Call& call) {
  return run_later(call, ProductRequest::of_bytes(call, call.boolean(8, "bigEndian")), 6);
}

}  // namespace gguf::binding
