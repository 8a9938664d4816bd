#include "machine/processors.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace gguf {

namespace {

/** The text of a small file of the system's; empty if it cannot be read. No streams: the C++ library's need
 * parts of glibc that musl does not have. */
std::string read_text(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "r"));
  if (file == nullptr) return {};
  std::string text(size_t{1} << 14, '\0');
  text.resize(std::fread(&text[0], 1, text.size(), file.get()));
  return text;
}

/** The limit in a file cpu.max: "<microseconds> <of so many>", or "max <of so many>". */
std::optional<int> processors_in(const std::string& path) {
  const std::string text = read_text(path);
  const char* const end = text.data() + text.size();
  uint64_t time, period;
  const auto after_time = std::from_chars(text.data(), end, time);
  if (after_time.ec != std::errc() || after_time.ptr == end) return std::nullopt;
  const auto after_period = std::from_chars(after_time.ptr + 1, end, period);
  if (after_period.ec != std::errc() || period == 0) return std::nullopt;
  return static_cast<int>(std::clamp<uint64_t>(time / period, 1, INT_MAX));
}

int hardware_threads() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

#ifdef __linux__

int allowed_threads() {
  cpu_set_t allowed;
  // Fails on machines with more processors than the set has room for.
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return hardware_threads();
  return std::max(1, CPU_COUNT(&allowed));
}

int threads_with_time() {
  return processors_of_control_group(read_text("/proc/self/cgroup"), "/sys/fs/cgroup").value_or(INT_MAX);
}

#else

int allowed_threads() {
  return hardware_threads();
}

int threads_with_time() {
  return INT_MAX;
}

#endif

}  // namespace

std::optional<int> processors_of_control_group(const std::string& membership, const std::string& root) {
  // "0::" begins the line of version 2; the others are hierarchies of version 1.
  const std::string lines = '\n' + membership;
  const size_t found = lines.find("\n0::/");
  if (found == std::string::npos) return std::nullopt;
  const size_t begin = found + 4;
  std::string group = lines.substr(begin, lines.find('\n', begin) - begin);
  // Seen from inside a container, a group can be outside of what is mounted.
  if (group.find("/..") != std::string::npos) group = "/";

  std::optional<int> least;
  for (;;) {
    if (const std::optional<int> own = processors_in(root + group + "/cpu.max")) {
      least = std::min(least.value_or(INT_MAX), *own);
    }
    if (group.size() <= 1) return least;
    group.erase(std::max<size_t>(1, group.rfind('/')));
  }
}

int processors() {
  static const int n = std::min(allowed_threads(), threads_with_time());
  return n;
}

}  // namespace gguf
