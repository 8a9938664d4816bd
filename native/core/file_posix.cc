#ifndef _WIN32

#if !defined(_FILE_OFFSET_BITS)
#define _FILE_OFFSET_BITS 64  // off_t of 64 bits on 32-bit systems too
#endif

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/checked.h"
#include "core/fault_guard.h"
#include "core/file.h"
#include "core/limits.h"
#include "core/system_codes.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

namespace gguf {

namespace {

/** The most that one read asks for: some systems take no more than 2^31 - 1. */
constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

Error open_error(const std::string& what, int system_error) {
  return Error{ErrorCode::kOpen, what + ": " + system_message(system_error), Error::kNoOffset, system_error};
}

/** A refusal by this library, with the system error that comes nearest. */
Error refuse(const std::string& what, int system_error) {
  return Error{ErrorCode::kOpen, what, Error::kNoOffset, system_error};
}

/** Opens for reading without waiting: opening a FIFO would wait for a writer without O_NONBLOCK, which
   regular files ignore. */
int open_for_reading(const char* path) {
  int fd;
  do {
    fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/** Nothing for a regular file. */
Status check_kind(mode_t mode) {
  if (S_ISREG(mode)) return std::nullopt;
  if (S_ISDIR(mode)) return refuse("it is a directory, not a file", EISDIR);
  const char* kind = S_ISFIFO(mode)   ? "a FIFO"
                     : S_ISSOCK(mode) ? "a socket"
                     : S_ISCHR(mode)  ? "a character device"
                     : S_ISBLK(mode)  ? "a block device"
                                      : "something else";
  return refuse(std::string("it is ") + kind + ", not a regular file", EINVAL);
}

/** Up to `n_bytes` from `offset`; fewer only at the end of the file. -1, with errno, where that fails. */
int64_t read_fully(int fd, uint64_t offset, uint8_t* dst, uint64_t n_bytes) {
  uint64_t done = 0;
  while (done < n_bytes) {
    if (offset + done > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) break;
    const size_t n_wanted = to_size(std::min(n_bytes - done, kMaxReadBytes));
    const ssize_t n_read = ::pread(fd, dst + done, n_wanted, static_cast<off_t>(offset + done));
    if (n_read == 0) break;
    if (n_read > 0) {
      done += static_cast<uint64_t>(n_read);
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return static_cast<int64_t>(done);
}

/** All of a file that reports no size; `size` is 0 where it is really empty. */
Status read_unsized(int fd, std::unique_ptr<uint8_t[]>& content, uint64_t& size) {
  uint64_t n_room = 4096;
  size = 0;
  for (;;) {
    std::unique_ptr<uint8_t[]> larger(new uint8_t[to_size(n_room)]);
    if (size > 0) std::memcpy(larger.get(), content.get(), to_size(size));
    content = std::move(larger);
    const int64_t n_read = read_fully(fd, size, content.get() + size, n_room - size);
    if (n_read < 0) return open_error("cannot read the file", errno);
    size += static_cast<uint64_t>(n_read);
    if (size < n_room) return std::nullopt;
    if (n_room >= kMaxUnsizedBytes) {
      return refuse("it reports no size but has more than " + std::to_string(kMaxUnsizedBytes) + " bytes",
                    EFBIG);
    }
    n_room *= 4;
  }
}

/** Pages are shared with the system's cache until they are written to; what is written stays in this process.
   No memory is reserved for such writes. nullptr where it cannot be mapped. */
uint8_t* map_privately(int fd, uint64_t size) {
  if (size > std::numeric_limits<size_t>::max()) return nullptr;
  void* start = ::mmap(nullptr, to_size(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  return start == MAP_FAILED ? nullptr : static_cast<uint8_t*>(start);
}

}  // namespace

Result<std::shared_ptr<File>> File::open_or_throw(const std::string& path, Access access) {
  if (path.find('\0') != std::string::npos) return refuse("the path holds a NUL byte", EINVAL);
  const std::shared_ptr<File> file(new File());
  file->fd_ = open_for_reading(path.c_str());
  if (file->fd_ < 0) return open_error("cannot open the file", errno);
  struct stat facts;
  if (::fstat(file->fd_, &facts) != 0) return open_error("cannot examine the file", errno);
  if (Status wrong_kind = check_kind(facts.st_mode)) return *wrong_kind;

  file->size_ = static_cast<uint64_t>(facts.st_size);
  if (file->size_ == 0) {
    if (Status failed = read_unsized(file->fd_, file->held_, file->size_)) return *failed;
    if (file->size_ > 0) file->data_ = file->held_.get();
  } else if (access == Access::kMap) {
    file->data_ = map_privately(file->fd_, file->size_);
    if (file->data_ != nullptr) {
      const size_t n_bytes = to_size(file->size_);
      file->watched_ = watch_mapping(file->data_, n_bytes, file->fd_);
      if (file->watched_ == nullptr) {  // then it is not safe to read
        ::munmap(file->data_, n_bytes);
        file->data_ = nullptr;
      }
    }
  }
  return file;
}

File::~File() {
  if (watched_ != nullptr) unwatch_mapping(watched_);
  if (data_ != nullptr && held_ == nullptr) ::munmap(data_, to_size(size_));
  if (fd_ >= 0) ::close(fd_);
}

Status File::read_from_system(uint64_t offset, uint8_t* dst, uint64_t n_bytes) const {
  const int64_t n_read = read_fully(fd_, offset, dst, n_bytes);
  if (n_read < 0) {
    Error error = open_error("cannot read the file", errno);
    error.offset = offset;
    return error;
  }
  if (static_cast<uint64_t>(n_read) == n_bytes) return std::nullopt;
  return ended_early(std::min(current_size(), offset + static_cast<uint64_t>(n_read)));
}

uint64_t File::current_size() const {
  struct stat facts;
  return ::fstat(fd_, &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : size_;
}

uint64_t File::zeroed_from() const {
  const size_t first = watched_ == nullptr ? SIZE_MAX : first_zeroed_byte(watched_);
  return first == SIZE_MAX ? size_ : first;
}

}  // namespace gguf

#endif  // !_WIN32
