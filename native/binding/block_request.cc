#include "binding/block_request.h"

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/file_handle.h"

namespace gguf::binding {

namespace {

/** The element of argument `index`, of `n_elements`, as a number of blocks. */
uint64_t block_argument(const Call& call, size_t index, const char* name, const Format& format,
                        uint64_t n_elements, const std::string* path) {
  const uint64_t element = call.whole(index, name);
  if (element > n_elements) {
    throw_range(call.environment(),
                std::string(name) + " must be at most " + std::to_string(n_elements) + ", found " +
                    std::to_string(element),
                path);
  }
  if (element % format.block_elements != 0) {
    throw_range(call.environment(),
                std::string(name) + " must be a multiple of the " + std::to_string(format.block_elements) +
                    " elements of a block, found " + std::to_string(element),
                path);
  }
  return element / format.block_elements;
}

/** The Uint8Array of whole blocks of argument `index`. */
TypedArray blocks_argument(const Call& call, size_t index, const Format& format) {
  const TypedArray array = array_argument(call, index, "blocks", napi_uint8_array);
  if (array.length % format.block_bytes != 0) {
    throw_range(call.environment(), std::to_string(array.length) +
                                        " bytes are not a whole number of blocks of " +
                                        std::to_string(format.block_bytes) + " bytes");
  }
  return array;
}

}  // namespace

void BlockRequest::take_file(const Call& call, size_t index) {
  file_ = &FileHandle::of(call, index);
}

const TensorInfo& BlockRequest::take_tensor(const Call& call, size_t index) {
  take_file(call, index);
  const TensorInfo& tensor = file_->tensor(call, index + 1);
  format_ = file_->format_of(call.environment(), tensor);
  tensor_offset_ = tensor.offset;
  return tensor;
}

void BlockRequest::take_array(const Call& call, bool big_endian, size_t index) {
  format_ = find_format_or_throw(call.environment(), call.uint32(index, "type"));
  array_argument_ = index + 1;
  look_up_array(call);
  big_endian_ = big_endian;
}

void BlockRequest::take_numbers(const Call& call, size_t index) {
  format_ = formats()[kF32];
  array_argument_ = index;
  array_of_floats_ = true;
  look_up_array(call);
  take_bytes(0, array_bytes_);
}

void BlockRequest::look_up_array(const Call& call) {
  const TypedArray bytes = array(call);
  array_bytes_ = bytes.length;
  array_memory_ = PinnedMemory::find(bytes.data, bytes.length);
}

TypedArray BlockRequest::array(const Call& call) const {
  if (!array_of_floats_) return blocks_argument(call, array_argument_, format_);
  TypedArray floats = floats_argument(call, array_argument_, "numbers");
  floats.length *= sizeof(float);
  return floats;
}

void BlockRequest::take_bytes(uint64_t first, uint64_t n_bytes) {
  src_offset_ = tensor_offset_ + first;
  src_bytes_ = n_bytes;
}

uint64_t BlockRequest::take_blocks(const Call& call, size_t index, uint64_t n_elements) {
  const uint64_t first = block_argument(call, index, "start", format_, n_elements, path());
  const uint64_t end = block_argument(call, index + 1, "end", format_, n_elements, path());
  if (first > end) throw_range(call.environment(), "start is past end", path());
  take_bytes(first * format_.block_bytes, (end - first) * format_.block_bytes);
  return end - first;
}

const std::string* BlockRequest::path() const {
  if (file_ != nullptr) return file_->path();
  return array_memory_ == nullptr ? nullptr : array_memory_->path();
}

BlockSource BlockRequest::locate(const Call& call) const {
  if (file_ != nullptr) return file_->blocks(call.environment(), src_offset_, src_bytes_);
  const TypedArray bytes = array(call);
  if (bytes.length != array_bytes_) {
    throw_range(call.environment(),
                std::string(array_of_floats_ ? "numbers" : "blocks") + " changed its length");
  }
  BlockSource source;
  source.data = bytes.data + src_offset_;
  source.big_endian = big_endian_;
  if (array_memory_ != nullptr && array_memory_->has(source.data, src_bytes_)) {
    source.file = array_memory_->file();
    source.offset = static_cast<uint64_t>(source.data - array_memory_->data());
    if (source.file != nullptr) source.mapped_bytes = array_memory_->size() - source.offset;
  }
  return source;
}

napi_value BlockRequest::memory_array(const Call& call) const {
  return file_ == nullptr ? call[array_argument_] : file_->memory();
}

bool BlockRequest::hold_in_place(const Call& call, const BlockSource& source, BlockHold* hold) const {
  if (path() != nullptr) hold->path = *path();
  if (file_ != nullptr && !file_->is_memory()) {
    hold->file = file_->shared_file();
    return true;
  }
  if (src_bytes_ == 0) return true;
  const napi_value array = memory_array(call);
  if (is_shared(call.env(), array)) {
    hold->array = Napi::Persistent(Napi::Object(call.env(), array));
    return true;
  }
  hold->memory = file_ != nullptr ? PinnedMemory::find(source.data, src_bytes_) : array_memory_;
  return hold->memory != nullptr && hold->memory->has(source.data, src_bytes_);
}

BlockSource BlockRequest::pin(const Call& call, BlockHold* hold) const {
  BlockSource source = locate(call);
  if (hold_in_place(call, source, hold)) return source;
  hold->copy = std::make_unique<SourceCopy>(call.env(), memory_array(call), source.data, src_bytes_);
  source.data = hold->copy->data();
  return source;
}

Output BlockRequest::find_or_make_output(const Call& call, size_t index, Out out, uint64_t n_elements) const {
  if (const auto given = output_argument(call, index, out, n_elements, path())) return *given;
  locate(call);
  return new_output(call.environment(), out, n_elements);
}

}  // namespace gguf::binding
