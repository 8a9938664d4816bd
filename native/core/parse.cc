// The start of the file, and the order in which the rest is read:
//
//   0       4         8               16 (12)       24 (16)
//   | GGUF  | version | tensor count  | key count   | keys | tensor directory | padding | tensor data
//
// in parentheses for version 1, whose counts have four bytes.
#include "core/parse.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/checked.h"
#include "core/parse_steps.h"
#include "core/text.h"

namespace gguf {

namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kFirstVersion = 1;
constexpr uint32_t kLastVersion = 3;

/** What is often found where a GGUF file should be. */
struct OtherFile {
  std::string_view start;
  const char* hint;
};
constexpr OtherFile kOtherFiles[] = {
    {"vers", "a Git LFS pointer, not the file itself?"},
    {"<!DO", "a web page?"},
    {"<htm", "a web page?"},
    {"PK\x03\x04", "a zip archive or a PyTorch file?"},
    {"lmgg", "a GGML file, older than GGUF?"},
    {"tjgg", "a GGML file, older than GGUF?"},
    {"fmgg", "a GGML file, older than GGUF?"},
};

bool bad_magic(Scan& scan, std::string_view found) {
  std::string detail = "not a GGUF file: it starts with " + quote_name(found) + " instead of 'GGUF'";
  for (const OtherFile& other : kOtherFiles) {
    if (found == other.start) detail += std::string(" (") + other.hint + ")";
  }
  scan.error = {ErrorCode::kMagic, detail, 0};
  return false;
}

bool parse_magic(Scan& scan) {
  // Where the file is too short for it, the bytes that are there tell whether this is a GGUF that was cut
  // off.
  Cursor ahead = scan.in;
  const uint8_t* bytes;
  const uint64_t n_here = std::min<uint64_t>(kMagic.size(), ahead.loaded());
  if (ahead.take(n_here, bytes)) {
    const std::string_view found(reinterpret_cast<const char*>(bytes), to_size(n_here));
    if (found != kMagic.substr(0, found.size())) return bad_magic(scan, found);
  }
  const uint64_t n_there = std::min<uint64_t>(kMagic.size(), scan.in.remaining());
  if (n_there == 0) return scan.truncated(0, "the file is empty");
  // In two steps: before all bytes are loaded, nothing can be said about the version.
  if (scan.in.skip(n_there) && scan.in.skip(kMagic.size() - n_there)) return true;
  return scan.short_of(0, "the magic 'GGUF'");
}

/** A big-endian file is recognised by its version, whose low 16 bits are zero when it is read as
 * little-endian. */
bool parse_version(Scan& scan, Header& header) {
  const uint64_t start = scan.in.offset();
  uint32_t version;
  if (!scan.in.read(version)) return scan.short_of(start, "the version");
  if (version != 0 && (version & 0xFFFF) == 0) {
    version = swap_bytes(version);
    header.byte_order = ByteOrder::kBig;
  }
  header.version = version;
  scan.in.set_format(version, header.byte_order);
  if (version >= kFirstVersion && version <= kLastVersion) return true;
  scan.error = {ErrorCode::kVersion,
                "the version is " + std::to_string(version) + "; versions 1 to 3 can be read", start};
  return false;
}

/** Checks `count`, from the field at `offset`, of entries of at least `smallest_bytes` each. */
bool check_count(Scan& scan, uint64_t offset, uint64_t count, const char* what, uint64_t smallest_bytes) {
  if (count > scan.in.remaining() / smallest_bytes) {
    return scan.truncated(offset, std::to_string(count) + " " + what + " do not fit in the " +
                                      std::to_string(scan.in.remaining()) + " bytes that are left");
  }
  if (count > kMaxEntries) {
    return scan.invalid(offset, "there are " + std::to_string(count) + " " + what + ", more than " +
                                    std::to_string(kMaxEntries));
  }
  return true;
}

struct Counts {
  uint64_t tensors, keys;
};

bool parse_counts(Scan& scan, Counts& counts) {
  const uint64_t tensors_offset = scan.in.offset();
  if (!scan.in.read_length(counts.tensors)) return scan.short_of(tensors_offset, "the number of tensors");
  const uint64_t keys_offset = scan.in.offset();
  if (!scan.in.read_length(counts.keys)) return scan.short_of(keys_offset, "the number of keys");
  return check_count(scan, tensors_offset, counts.tensors, "tensors", smallest_tensor_bytes(scan.in)) &&
         check_count(scan, keys_offset, counts.keys, "keys", smallest_key_bytes(scan.in));
}

bool parse(Scan& scan, TypeSizeOf type_size, ParseOptions options, Header& header) {
  Counts counts = {};
  return parse_magic(scan) && parse_version(scan, header) && parse_counts(scan, counts) &&
         parse_metadata(scan, counts.keys, header) &&
         parse_tensors(scan, counts.tensors, type_size, header) &&
         place_tensors(scan, options.partial, header);
}

}  // namespace

ParseOutcome parse_header_or_throw(const uint8_t* bytes, uint64_t n_bytes, uint64_t file_size,
                                   TypeSizeOf type_size, ParseOptions options) {
  n_bytes = std::min(n_bytes, file_size);
  Header header;
  header.file_size = file_size;
  Scan scan(Cursor(bytes, 0, n_bytes, file_size));
  scan.passed = options.passed;
  scan.passed_context = options.passed_context;
  if (parse(scan, type_size, options, header)) return {std::move(header), false};
  return {std::move(scan.error), scan.need_more, scan.need_more ? scan.in.needed() : 0};
}

}  // namespace gguf
