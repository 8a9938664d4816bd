#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding/async_tasks.h"
#include "binding/buffers.h"
#include "binding/deferred.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/strings.h"
#include "core/checked.h"
#include "core/fault_guard.h"
#include "core/parse.h"
#include "dequant/type_size.h"

namespace gguf::binding {

namespace {

/** Read at first of a file that is not mapped: most headers without a vocabulary are shorter. */
constexpr uint64_t kFirstReadBytes = uint64_t{256} << 10;

/** Longest header of a file that is not mapped: all of it has to be in memory. Known ones have some 10 MiB; a
   sparse file can claim any size for a few bytes on disk. */
constexpr uint64_t kMaxReadHeaderBytes = uint64_t{1} << 30;

struct OpenArguments {
  std::string path;
  Access access;
  ParseOptions options;
};

void forget_passed(const void* file, uint64_t begin, uint64_t end) {
  static_cast<const File*>(file)->forget(begin, end);
}

Result<Header> read_header(const File& file, ParseOptions options) {
  if (file.size() == 0 || (file.data() != nullptr && kMappedReadsNeverFault)) {
    options.passed = forget_passed;
    options.passed_context = &file;
    Result<Header> header = parse_header(file.data(), file.size(), file.size(), type_size, options).result;
    // Where the file was cut off meanwhile, what was parsed is not its header.
    const uint64_t end = header.ok() ? std::min(header.value().data_offset, file.size()) : file.size();
    if (Status cut = file.check(0, end)) return *cut;
    return header;
  }
  std::vector<uint8_t> bytes;
  for (uint64_t wanted = kFirstReadBytes;;) {
    const uint64_t known = bytes.size();
    bytes.resize(to_size(std::min(wanted, file.size())));
    if (Status failure = file.read(known, bytes.data() + known, bytes.size() - known)) return *failure;
    ParseOutcome outcome = parse_header(bytes.data(), bytes.size(), file.size(), type_size, options);
    if (!outcome.need_more || bytes.size() == file.size()) return std::move(outcome.result);
    wanted = std::max(std::min(2 * wanted, kMaxReadHeaderBytes), outcome.n_needed);
    if (wanted > kMaxReadHeaderBytes) {
      return Error{ErrorCode::kInvalid,
                   "the header is longer than " + std::to_string(kMaxReadHeaderBytes) +
                       " bytes, too long for a file that is not mapped",
                   bytes.size()};
    }
  }
}

/** Opens a file on any thread; never throws. */
Result<OpenedFile> open_file(const OpenArguments& arguments) noexcept {
  try {
    Result<std::shared_ptr<File>> file = File::open(arguments.path, arguments.access);
    if (!file.ok()) return std::move(file.error());
    Result<Header> header = read_header(*file.value(), arguments.options);
    if (!header.ok()) return std::move(header.error());
    return OpenedFile{std::move(file.value()), std::move(header.value())};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

OpenArguments open_arguments(const Call& call) {
  OpenArguments arguments;
  if (!get_string(call.env(), call[0], &arguments.path))
    throw_arg_type(call.environment(), "path", "of type string");
  if (arguments.path.find('\0') != std::string::npos) {
    throw_arg_type(call.environment(), "path", "a string without null bytes");
  }
  arguments.access = call.boolean(1, "read") ? Access::kRead : Access::kMap;
  arguments.options.partial = call.boolean(2, "partial");
  return arguments;
}

napi_value new_file_object(Environment& environment, OpenedFile opened, std::string path) {
  return FileHandle::wrap(environment.env, std::make_unique<FileHandle>(std::move(opened), std::move(path)));
}

/** One file being opened on a thread of the pool. */
class OpenTask : public AsyncTask {
 public:
  OpenTask(Environment& environment, OpenArguments arguments)
      : environment_(environment), arguments_(std::move(arguments)) {}

  /** Makes the promise; once. Runs JavaScript (async_hooks). */
  napi_value promise() { return deferred_.promise(environment_); }

  void execute() noexcept override { result_.emplace(open_file(arguments_)); }

  void complete() override {
    if (!result_) return;  // never started: the environment is ending
    napi_value reason;
    try {
      if (result_->ok()) {
        const napi_value file = new_file_object(environment_, std::move(result_->value()), arguments_.path);
        deferred_.resolve(file);
        return;
      }
      reason = make_error(environment_, result_->error(), &arguments_.path);
    } catch (...) {
      reason = caught_value(environment_);
    }
    if (reason != nullptr) deferred_.reject(reason);
  }

 private:
  Environment& environment_;
  const OpenArguments arguments_;
  Deferred deferred_;
  std::optional<Result<OpenedFile>> result_;
};

}  // namespace

napi_value open_sync(const Call& call) {
  OpenArguments arguments = open_arguments(call);
  Result<OpenedFile> opened = open_file(arguments);
  if (!opened.ok()) throw_error(call.environment(), opened.error(), &arguments.path);
  return new_file_object(call.environment(), std::move(opened.value()), std::move(arguments.path));
}

napi_value open_async(const Call& call) {
  auto task = std::make_unique<OpenTask>(call.environment(), open_arguments(call));
  const napi_value promise = task->promise();
  call.environment().async_tasks.queue(std::move(task), "gguf-native open");
  return promise;
}

napi_value parse_memory(const Call& call) {
  const TypedArray array = array_argument(call, 0, "bytes", napi_uint8_array);
  ParseOptions options;
  options.partial = call.boolean(1, "partial");
  const uint64_t file_size = call.is_undefined(2) ? array.length : call.whole(2, "fileSize");
  ParseOutcome outcome = parse_header(array.data, array.length, file_size, type_size, options);
  if (outcome.need_more && array.length < file_size) return nullptr;
  if (!outcome.result.ok()) throw_error(call.environment(), outcome.result.error());
  return FileHandle::wrap(call.env(), std::make_unique<FileHandle>(Napi::Object(call.env(), call[0]),
                                                                   std::move(outcome.result.value())));
}

napi_value close_file(const Call& call) {
  FileHandle::of(call, 0).close(call.env());
  return nullptr;
}

}  // namespace gguf::binding
