#ifdef _WIN32

#include <algorithm>
#include <limits>

#include "core/file.h"
#include "core/limits.h"
#include "core/system_codes.h"
#include "core/windows_api.h"

#ifndef ERROR_DIRECTORY_NOT_SUPPORTED
#define ERROR_DIRECTORY_NOT_SUPPORTED 336  // older headers do not have it
#endif

namespace gguf {

namespace {

/** The most that one read asks for; ReadFile takes 32 bits. */
constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

Error open_error(const std::string& what, DWORD system_error) {
  const int number = static_cast<int>(system_error);
  return Error{ErrorCode::kOpen, what + ": " + system_message(number), Error::kNoOffset, number};
}

/** A refusal by this library, with the system error that comes nearest. */
Error refuse(const std::string& what, DWORD system_error) {
  return Error{ErrorCode::kOpen, what, Error::kNoOffset, static_cast<int>(system_error)};
}

/** Empty where `text` is not UTF-8. */
std::wstring to_utf16(const std::string& text) {
  const int n_bytes = static_cast<int>(text.size());
  const int n_units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), n_bytes, nullptr, 0);
  std::wstring wide(static_cast<size_t>(std::max(n_units, 0)), L'\0');
  if (n_units > 0)
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), n_bytes, &wide[0], n_units);
  return wide;
}

/** Paths of MAX_PATH units and more need the \\?\ form, which takes only absolute paths. Shorter ones stay as
   they are: that form switches off what the system does with names such as "a/b". */
std::wstring allow_long(const std::wstring& path) {
  const bool prefixed = path.compare(0, 4, L"\\\\?\\") == 0 || path.compare(0, 4, L"\\\\.\\") == 0;
  if (prefixed) return path;
  const DWORD n_units = GetFullPathNameW(path.c_str(), 0, nullptr, nullptr);  // the NUL at the end included
  if (n_units == 0 || n_units < MAX_PATH) return path;
  std::wstring full(n_units, L'\0');
  full.resize(GetFullPathNameW(path.c_str(), n_units, &full[0], nullptr));
  if (full.compare(0, 2, L"\\\\") == 0) return L"\\\\?\\UNC\\" + full.substr(2);
  return L"\\\\?\\" + full;
}

/** Copy-on-write: what is written stays in this process. The view keeps the section alive. nullptr where it
   cannot be mapped; the system charges the whole size against its commit limit, so this can happen with large
   files. */
uint8_t* map_privately(HANDLE file, uint64_t size) {
  if (size > std::numeric_limits<size_t>::max()) return nullptr;
  const HANDLE section = CreateFileMappingW(file, nullptr, PAGE_WRITECOPY, 0, 0, nullptr);
  if (section == nullptr) return nullptr;
  void* start = MapViewOfFile(section, FILE_MAP_COPY, 0, 0, static_cast<SIZE_T>(size));
  CloseHandle(section);
  return static_cast<uint8_t*>(start);
}

}  // namespace

Result<std::shared_ptr<File>> File::open_or_throw(const std::string& path, Access access) {
  if (path.find('\0') != std::string::npos) return refuse("the path holds a NUL byte", ERROR_INVALID_NAME);
  if (path.size() > std::numeric_limits<int>::max() / 2)
    return refuse("the path is too long", ERROR_FILENAME_EXCED_RANGE);
  const std::wstring wide = to_utf16(path);
  if (wide.empty())
    return refuse(path.empty() ? "the path is empty" : "the path is not UTF-8", ERROR_INVALID_NAME);
  const std::wstring usable = allow_long(wide);

  const std::shared_ptr<File> file(new File());
  const HANDLE handle =
      CreateFileW(usable.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                  nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    const DWORD error = GetLastError();
    const DWORD attributes = GetFileAttributesW(usable.c_str());
    const bool directory =
        attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    // The system only says that access is denied.
    if (directory) return refuse("it is a directory, not a file", ERROR_DIRECTORY_NOT_SUPPORTED);
    return open_error("cannot open the file", error);
  }
  file->handle_ = handle;
  if (GetFileType(handle) != FILE_TYPE_DISK) {
    return refuse("it is a device or a pipe, not a regular file", ERROR_INVALID_PARAMETER);
  }
  LARGE_INTEGER size;
  if (!GetFileSizeEx(handle, &size)) return open_error("cannot examine the file", GetLastError());
  file->size_ = static_cast<uint64_t>(size.QuadPart);
  if (access == Access::kMap && file->size_ > 0) file->data_ = map_privately(handle, file->size_);
  return file;
}

File::~File() {
  if (data_ != nullptr && held_ == nullptr) UnmapViewOfFile(data_);
  if (handle_ != nullptr) CloseHandle(handle_);
}

Status File::read_from_system(uint64_t offset, uint8_t* dst, uint64_t n_bytes) const {
  uint64_t done = 0;
  while (done < n_bytes) {
    const uint64_t at = offset + done;
    OVERLAPPED position = {};
    position.Offset = static_cast<DWORD>(at & 0xFFFFFFFF);
    position.OffsetHigh = static_cast<DWORD>(at >> 32);
    DWORD n_read = 0;
    const DWORD n_wanted = static_cast<DWORD>(std::min(n_bytes - done, kMaxReadBytes));
    if (!ReadFile(handle_, dst + done, n_wanted, &n_read, &position)) {
      const DWORD system_error = GetLastError();
      if (system_error == ERROR_HANDLE_EOF) return ended_early(std::min(current_size(), at));
      Error error = open_error("cannot read the file", system_error);
      error.offset = at;
      return error;
    }
    if (n_read == 0) return ended_early(std::min(current_size(), at));
    done += n_read;
  }
  return std::nullopt;
}

uint64_t File::current_size() const {
  LARGE_INTEGER size;
  return GetFileSizeEx(handle_, &size) ? static_cast<uint64_t>(size.QuadPart) : size_;
}

uint64_t File::zeroed_from() const {
  return size_;
}

}  // namespace gguf

#endif  // _WIN32
