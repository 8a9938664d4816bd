// Bringing a part of a file into memory, as JavaScript asks for it: as a job.
#include "binding/block_request.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/run.h"
#include "work/chunked_warming.h"

namespace gguf::binding {

namespace {

class WarmRequest : public BlockRequest {
 public:
  /** Of file, the first byte, how many, and whether to lock them. */
  explicit WarmRequest(const Call& call)
      : n_bytes_(call.whole(2, "byteLength")), lock_(call.boolean(3, "lock")) {
    take_file(call, 0);
    take_bytes(call.whole(1, "first"), n_bytes_);
  }

  /** Its result is empty. */
  Output find_or_make_output(const Call& call) const {
    return new_output(call.environment(), Out::kFloat32, 0);
  }
  uint64_t output_bytes() const { return 0; }
  bool is_small() const { return false; }
  ChunkedWarming make_work(const Call&, const BlockSource& source, int, void*) const {
    return ChunkedWarming(source, n_bytes_, lock_);
  }

 private:
  const uint64_t n_bytes_;
  const bool lock_;
};

}  // namespace

napi_value warm_async(const Call& call) {
  return run_later(call, WarmRequest(call), 4);
}

}  // namespace gguf::binding
