#include "binding/file_handle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/tagged.h"
#include "core/checked.h"
#include "core/fault_guard.h"

namespace gguf::binding {

namespace {

constexpr napi_type_tag kFileTag = {0x1d2f3c9a60e84b57, 0x9b0a7c5e41f6d283};

/** About what the name of a key or tensor and its place in an index take. */
constexpr size_t kNameBytes = 48;

std::string byte_range(uint64_t begin, uint64_t n_bytes) {
  return "bytes " + std::to_string(begin) + " to " + std::to_string(begin + n_bytes);
}

}  // namespace

Format find_format_or_throw(Environment& environment, uint32_t type, uint64_t offset,
                            const std::string* path) {
  if (const Format* const format = find_format(type)) return *format;
  const std::string detail = "the tensor type " + std::to_string(type) + " is not known";
  throw_error(environment, Error{ErrorCode::kUnsupportedType, detail, offset}, path);
}

FileHandle::FileHandle(OpenedFile opened, std::string path)
    : header_(std::make_shared<const Header>(std::move(opened.header))),
      path_(std::move(path)),
      is_memory_(false),
      file_(std::move(opened.file)) {
  if (file_->data() != nullptr) mapping_ = PinnedMemory::of_mapping(file_, path_);
}

FileHandle::FileHandle(Napi::Object bytes, Header header)
    : header_(std::make_shared<const Header>(std::move(header))),
      is_memory_(true),
      array_(Napi::Persistent(bytes)) {}

napi_value FileHandle::wrap(napi_env env, std::unique_ptr<FileHandle> handle) {
  const Header& header = *handle->header_;
  const size_t n_bytes = sizeof(FileHandle) + header.keys.size() * (sizeof(KeyValue) + kNameBytes) +
                         header.tensors.size() * (sizeof(TensorInfo) + kNameBytes);
  return binding::wrap(env, kFileTag, std::move(handle), n_bytes);
}

FileHandle& FileHandle::of(const Call& call, size_t index) {
  FileHandle* const handle = unwrap<FileHandle>(call.env(), kFileTag, call[index]);
  if (handle == nullptr) throw_arg_type(call.environment(), "file", "an open GGUF file");
  return *handle;
}

const TensorInfo& FileHandle::tensor(const Call& call, size_t index) const {
  const std::vector<TensorInfo>& tensors = header(call.environment()).tensors;
  return tensors[call.position(index, "index", tensors.size())];
}

Format FileHandle::format_of(Environment& environment, const TensorInfo& tensor) const {
  return find_format_or_throw(environment, tensor.type, tensor.entry_offset, path());
}

std::shared_ptr<const PreparedRows> FileHandle::prepared(const Call& call, size_t index) const {
  const auto found = prepared_.find(call.uint32(index, "index"));
  return found == prepared_.end() || !found->second->is_ready() ? nullptr : found->second;
}

void FileHandle::keep_prepared(const Call& call, size_t index, std::shared_ptr<const PreparedRows> rows) {
  prepared_[call.uint32(index, "index")] = std::move(rows);
}

void FileHandle::close(napi_env env) {
  if (header_ == nullptr) return;
  header_.reset();
  prepared_.clear();
  array_.Reset();
  file_.reset();
  const std::shared_ptr<PinnedMemory> mapping = std::move(mapping_);
  const auto views = std::move(views_);
  for (const auto& [index, view] : views) {
    const napi_value buffer = view.Value();
    // Node may be reading the memory, for a socket or a file, and then keeps only the object alive. So the
    // object keeps the mapping, until it is collected.
    if (buffer == nullptr || !keep_with(env, buffer, mapping)) continue;
    // Fails where JavaScript has moved or detached the buffer already: then it has no view of the mapping.
    napi_detach_arraybuffer(env, buffer);
  }
}

void FileHandle::throw_closed(Environment& environment) const {
  throw_error(environment, Error{ErrorCode::kClosed, "the file is closed"}, path());
}

const uint8_t* FileHandle::locate(Environment& environment, uint64_t offset, uint64_t n_bytes) {
  const Header& parsed = header(environment);
  uint64_t size;
  const uint8_t* data;
  if (is_memory_) {
    TypedArray array;
    get_typed_array(environment.env, array_.Value(), &array);
    size = array.length;
    data = array.data;
    if (size == 0 && parsed.file_size != 0) {
      throw_error(environment, Error{ErrorCode::kClosed, "the memory that was parsed is detached"});
    }
  } else {
    size = file_->size();
    data = file_->data();
  }
  if (offset > size || n_bytes > size - offset) {
    const std::string detail =
        byte_range(offset, n_bytes) + " are needed, but there are only " + std::to_string(size) + " bytes";
    throw_error(environment, Error{ErrorCode::kTruncated, detail, offset}, path());
  }
  return data == nullptr ? nullptr : data + offset;
}

Bytes FileHandle::bytes(Environment& environment, uint64_t begin, uint64_t end, bool javascript_may_run) {
  Bytes bytes;
  bytes.data = locate(environment, begin, end - begin);
  if (bytes.data != nullptr && (is_memory_ ? !javascript_may_run : kMappedReadsNeverFault)) {
    bytes.file = file_;
    return bytes;
  }
  bytes.copy.resize(to_size(end - begin));
  if (is_memory_) {
    std::copy_n(bytes.data, bytes.copy.size(), bytes.copy.data());
  } else if (Status failure = file_->read(begin, bytes.copy.data(), bytes.copy.size())) {
    throw_error(environment, *failure, path());
  }
  bytes.data = bytes.copy.data();
  return bytes;
}

BlockSource FileHandle::blocks(Environment& environment, uint64_t offset, uint64_t n_bytes) {
  BlockSource source;
  source.offset = offset;
  // An empty tensor may lie past the end of the file: only whether the file is open is asked then.
  source.data = locate(environment, n_bytes == 0 ? 0 : source.offset, n_bytes);
  source.file = file_.get();
  if (mapping_ != nullptr && source.data != nullptr) source.mapped_bytes = file_->size() - source.offset;
  source.big_endian = header_->byte_order == ByteOrder::kBig;
  return source;
}

void FileHandle::copy_bytes(const Call& call, uint64_t begin, uint64_t n_bytes, const char* of, bool forget) {
  Environment& environment = call.environment();
  const uint64_t first = call.whole(2, "first");
  const TypedArray out = array_argument(call, 3, "out", napi_uint8_array);
  if (first > n_bytes || out.length > n_bytes - first) {
    const std::string detail =
        byte_range(first, out.length) + " are not all in the " + std::to_string(n_bytes) + " of the " + of;
    throw_error(environment, Error{ErrorCode::kRange, detail}, path());
  }
  if (out.length == 0) return;
  begin += first;
  const uint64_t end = begin + out.length;
  const Bytes bytes = this->bytes(environment, begin, end, false);
  std::copy_n(bytes.data, out.length, out.data);
  if (const Status lost = bytes.check(begin, out.length)) throw_error(environment, *lost, path());
  if (forget && bytes.file != nullptr) bytes.file->forget(begin, end);
}

napi_value FileHandle::view(Environment& environment, size_t index) {
  const TensorInfo& tensor = header(environment).tensors[index];
  format_of(environment, tensor);
  const uint64_t offset = tensor.offset;
  const uint64_t n_bytes = tensor.n_bytes;
  const uint8_t* const data = blocks(environment, offset, n_bytes).data;
  if (n_bytes == 0 || data == nullptr) return copied_view(environment, offset, n_bytes);
  if (!is_memory_) {
    if (Status failure = file_->check(offset, n_bytes)) throw_error(environment, *failure, path());
    return mapped_view(environment, static_cast<uint32_t>(index), offset, n_bytes);
  }
  napi_value buffer;
  size_t array_offset;
  check(environment.env, napi_get_typedarray_info(environment.env, array_.Value(), nullptr, nullptr, nullptr,
                                                  &buffer, &array_offset));
  // Node-API does not make views of SharedArrayBuffers, JavaScript does.
  Napi::Env env(environment.env);
  return environment.uint8_array.New({buffer,
                                      Napi::Number::New(env, static_cast<double>(array_offset + offset)),
                                      Napi::Number::New(env, static_cast<double>(n_bytes))});
}

napi_value FileHandle::copied_view(Environment& environment, uint64_t offset, uint64_t n_bytes) {
  const std::shared_ptr<const File> file = file_;  // making the array may run JavaScript
  void* to;
  const napi_value view = new_whole_array(environment, napi_uint8_array, n_bytes, &to, path());
  if (n_bytes == 0) return view;
  if (Status failure = file->read(offset, to, n_bytes)) throw_error(environment, *failure, path());
  return view;
}

napi_value FileHandle::mapped_view(Environment& environment, uint32_t index, uint64_t offset,
                                   uint64_t n_bytes) {
  const auto known = views_.find(index);
  napi_value buffer = known == views_.end() ? nullptr : static_cast<napi_value>(known->second.Value());
  bool detached = false;
  if (buffer != nullptr)
    check(environment.env, napi_is_detached_arraybuffer(environment.env, buffer, &detached));
  if (buffer == nullptr || detached) {
    buffer = new_external(environment, mapping_->data() + offset, n_bytes, mapping_);
    if (buffer == nullptr) {
      if (n_bytes <= UINT32_MAX) return copied_view(environment, offset, n_bytes);
      const std::string detail = "this runtime has no Uint8Array of " + std::to_string(n_bytes) + " bytes";
      throw_error(environment, Error{ErrorCode::kRange, detail, offset}, path());
    }
    views_[index] = Napi::Weak(Napi::ArrayBuffer(environment.env, buffer));
  }
  return new_view(environment, napi_uint8_array, buffer, 0, n_bytes);
}

napi_value tensor_bytes(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  return file.view(call.environment(),
                   call.position(1, "index", file.header(call.environment()).tensors.size()));
}

napi_value read_tensor_bytes(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  Environment& environment = call.environment();
  const TensorInfo& tensor = file.tensor(call, 1);
  file.format_of(environment, tensor);
  file.copy_bytes(call, tensor.offset, tensor.n_bytes, "tensor", false);
  return nullptr;
}

}  // namespace gguf::binding
