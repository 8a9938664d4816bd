// Opening: any bytes, all there or only the first of a longer file, against the naive parser.
//
//   | flags | extra: u16, little-endian | the file ...
#include "core/parse.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "test/fuzz/gguf_mutator.h"
#include "test/fuzz/naive_parse.h"
#include "test/fuzz/require.h"
#include "test/fuzz/targets.h"

namespace gguf::fuzz {
namespace {

constexpr size_t kOptionBytes = 3;

enum Flag : uint8_t {
  kPartial = 1,
  kPrefixToo = 2,   // parses the first bytes alone as well
  kLonger = 4,      // the file goes on for a few bytes after those that are here,
  kMuchLonger = 8,  // for up to 64 KiB,
  kEndless = 16,    // or for many GiB, so that any count fits
};

void check_key(const Header& header, const KeyValue& entry) {
  FUZZ_REQUIRE(header.find_key(entry.key) == &entry);
  FUZZ_REQUIRE(value_type_name(entry.type) != nullptr && value_type_name(entry.element_type) != nullptr);
  FUZZ_REQUIRE(entry.begin <= entry.end && entry.end <= header.file_size);
}

void check_tensor(const Header& header, const TensorInfo& tensor, bool partial) {
  FUZZ_REQUIRE(header.find_tensor(tensor.name) == &tensor);
  FUZZ_REQUIRE(tensor.offset >= header.data_offset && tensor.entry_offset < header.file_size);
  if (tensor.n_bytes == TensorInfo::kUnknownSize) return;
  FUZZ_REQUIRE(tensor.n_bytes <= UINT64_MAX - tensor.offset);
  FUZZ_REQUIRE(partial || tensor.offset + tensor.n_bytes <= header.file_size);
}

void check_header(const Header& header, bool partial) {
  FUZZ_REQUIRE(header.alignment != 0 && (header.alignment & (header.alignment - 1)) == 0);
  for (const KeyValue& entry : header.keys) check_key(header, entry);
  for (const TensorInfo& tensor : header.tensors) check_tensor(header, tensor, partial);
}

void check_error(const Error& error, uint64_t file_size) {
  FUZZ_REQUIRE(error.code == ErrorCode::kMagic || error.code == ErrorCode::kVersion ||
               error.code == ErrorCode::kTruncated || error.code == ErrorCode::kInvalid);
  FUZZ_REQUIRE(error.offset <= file_size);
  FUZZ_REQUIRE(!error.detail.empty());
  for (const char c : error.detail) {  // it goes to terminals and logs
    const auto byte = static_cast<unsigned char>(c);
    FUZZ_REQUIRE(byte >= 32 && byte != 127);
  }
}

ParseOutcome parse_and_check(const uint8_t* bytes, size_t n_bytes, uint64_t file_size, bool partial) {
  ParseOutcome outcome = parse_header(bytes, n_bytes, file_size, type_size, {partial});
  if (outcome.result.ok()) {
    FUZZ_REQUIRE(!outcome.need_more);
    check_header(outcome.result.value(), partial);
  } else {
    check_error(outcome.result.error(), file_size);
    FUZZ_REQUIRE(!outcome.need_more || (n_bytes < outcome.n_needed && outcome.n_needed <= file_size));
  }
  return outcome;
}

void compare(const ParseOutcome& outcome, const NaiveFile& naive) {
  FUZZ_REQUIRE(outcome.result.ok() == naive.good);
  if (!naive.good) return;
  const Header& header = outcome.result.value();
  FUZZ_REQUIRE(header.keys.size() == naive.keys.size() && header.tensors.size() == naive.tensors.size());
  for (size_t i = 0; i < naive.keys.size(); i++) {
    FUZZ_REQUIRE(header.keys[i].begin == naive.keys[i].begin && header.keys[i].end == naive.keys[i].end);
  }
  for (size_t i = 0; i < naive.tensors.size(); i++) {
    FUZZ_REQUIRE(header.tensors[i].offset == naive.tensors[i].offset &&
                 header.tensors[i].n_elements == naive.tensors[i].n_elements);
  }
}

/** Parsing the first bytes of a file asks for more or says what parsing all of them says. */
void compare_prefix(const ParseOutcome& whole, const uint8_t* bytes, size_t n_bytes, size_t n_first,
                    bool partial) {
  const std::unique_ptr<uint8_t[]> first(new uint8_t[n_first]);  // so that reading on is noticed
  for (size_t i = 0; i < n_first; i++) first[i] = bytes[i];
  const ParseOutcome outcome = parse_and_check(first.get(), n_first, n_bytes, partial);
  if (outcome.need_more) return;
  FUZZ_REQUIRE(outcome.result.ok() == whole.result.ok());
  if (whole.result.ok()) return;
  const Error &a = outcome.result.error(), &b = whole.result.error();
  FUZZ_REQUIRE(a.code == b.code && a.offset == b.offset);
  // That there is no magic is told by as many bytes of it as there are.
  FUZZ_REQUIRE(a.detail == b.detail || (a.code == ErrorCode::kMagic && n_first < 4));
}

}  // namespace
}  // namespace gguf::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return gguf::fuzz::mutate_input(data, size, max_size, seed, gguf::fuzz::kOptionBytes);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gguf::fuzz;
  if (size < kOptionBytes) return -1;
  const uint8_t flags = data[0];
  const uint64_t extra = data[1] | data[2] << 8;
  const uint8_t* const file = data + kOptionBytes;
  const size_t n_bytes = size - kOptionBytes;
  const bool partial = (flags & kPartial) != 0;
  if ((flags & kLonger) != 0) {
    // The memory that is set aside for so many entries is bounded, but too much for thousands of runs a
    // second.
    const bool endless = (flags & kEndless) != 0 && extra % 64 == 0;
    const uint64_t n_more = endless ? extra << 30 : (flags & kMuchLonger) != 0 ? extra : extra % 256;
    parse_and_check(file, n_bytes, n_bytes + n_more, partial);
    return 0;
  }
  const gguf::ParseOutcome outcome = parse_and_check(file, n_bytes, n_bytes, partial);
  compare(outcome, naive_parse(file, n_bytes, partial));
  if ((flags & kPrefixToo) != 0) compare_prefix(outcome, file, n_bytes, extra % (n_bytes + 1), partial);
  return 0;
}
