//   ... tensor directory | padding | tensor | gap | tensor | ...
//                                  ^ data_offset: the end of the directory, rounded up to the alignment
//
// Tensors may lie in any order and with gaps, but inside the file and apart from each other. A tensor of an
// unknown type has an unknown size: all that is asked is that it starts in the file.
#include <algorithm>
#include <string>

#include "core/checked.h"
#include "core/parse_steps.h"
#include "core/text.h"

namespace gguf {

namespace {

/** Where the directory holds the tensor's offset: last in its entry. */
uint64_t offset_field(const Cursor& in, const TensorInfo& tensor) {
  return tensor.entry_offset + in.length_bytes() + tensor.name.size() + sizeof tensor.n_dims +
         uint64_t{tensor.n_dims} * in.length_bytes() + sizeof tensor.type;
}

/** Neither empty nor of unknown size. */
bool takes_room(const TensorInfo& tensor) {
  return tensor.n_bytes != 0 && tensor.n_bytes != TensorInfo::kUnknownSize;
}

bool find_data(Scan& scan, bool partial, Header& header) {
  const uint64_t directory_end = scan.in.offset();
  const KeyValue* alignment_key = header.find_key(kAlignmentKey);
  const bool fits = round_up(directory_end, header.alignment, header.data_offset);
  if (!fits) header.data_offset = directory_end;
  if ((fits && header.data_offset <= header.file_size) || partial) return true;
  const std::string where = "the tensor data would start at byte " + std::to_string(header.data_offset) +
                            ", past the end, at byte " + std::to_string(header.file_size);
  if (alignment_key != nullptr) {
    return scan.invalid(alignment_key->begin, "with " + std::string(kAlignmentKey) + " " +
                                                  std::to_string(header.alignment) + " " + where);
  }
  // Writers that store no tensors and know of no alignment do not pad.
  return header.tensors.empty() || scan.truncated(directory_end, where);
}

/** Where the data of the last tensor ends, of those whose end is a number of 64 bits. */
uint64_t end_of_data(const Header& header) {
  uint64_t last = header.data_offset;
  for (const TensorInfo& tensor : header.tensors) {
    uint64_t end;
    if (!add(tensor.offset, takes_room(tensor) ? tensor.n_bytes : 0, end)) continue;
    if (add(end, header.data_offset, end)) last = std::max(last, end);
  }
  return last;
}

bool check_extent(Scan& scan, bool partial, const Header& header, const TensorInfo& tensor) {
  const uint64_t stored = tensor.offset;
  uint64_t begin;
  const uint64_t n_bytes = takes_room(tensor) ? tensor.n_bytes : 0;
  uint64_t end;
  if (add(stored, header.data_offset, begin) && add(begin, n_bytes, end)) {
    if (partial || end <= header.file_size) return true;
    return scan.truncated(offset_field(scan.in, tensor), "incomplete: has " + grouped(header.file_size) +
                                                             " bytes, needs " + grouped(end_of_data(header)) +
                                                             "; the data of tensor " +
                                                             quote_name(tensor.name) + " is cut off");
  }
  // Not even a file that was cut off can hold what does not fit in 64 bits.
  scan.kind = "tensor";
  scan.name = tensor.name;
  return scan.truncated(offset_field(scan.in, tensor),
                        "its data, " + std::to_string(n_bytes) + " bytes at offset " +
                            std::to_string(stored) + " from the start of the data at byte " +
                            std::to_string(header.data_offset) + ", runs past the end, at byte " +
                            std::to_string(header.file_size));
}

bool overlap(Scan& scan, uint64_t data_offset, const TensorInfo& before, const TensorInfo& after) {
  const bool as_listed = before.entry_offset < after.entry_offset;  // in the directory
  const TensorInfo &first = as_listed ? before : after, &second = as_listed ? after : before;
  const auto range = [data_offset](const TensorInfo& tensor) {
    const uint64_t begin = data_offset + tensor.offset;
    return "bytes " + std::to_string(begin) + " to " + std::to_string(begin + tensor.n_bytes);
  };
  scan.kind = "tensor";
  scan.name = second.name;
  // Old files of ik_llama.cpp have smaller blocks where those of PrismML's fork are expected.
  const std::string owner = before.type == 142 ? "; type 142 is PQ2_0 here, but may be IQ2_TN of ik_llama.cpp"
                            : before.type == 143
                                ? "; type 143 is PTQ1_0 here, but may be IQ1_TN of ik_llama.cpp"
                                : "";
  return scan.invalid(offset_field(scan.in, second),
                      "its data, " + range(second) + ", overlaps that of tensor " + quote_name(first.name) +
                          ", " + range(first) + owner);
}

/** Nearly every file has its tensors in order: then one pass is enough. */
bool in_order(const std::vector<TensorInfo>& tensors) {
  uint64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    if (!takes_room(tensor)) continue;
    if (tensor.offset < end) return false;
    end = tensor.offset + tensor.n_bytes;
  }
  return true;
}

/** Those that take room, in the order of their data. */
std::vector<const TensorInfo*> by_offset_in_file(const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> by_offset;
  for (const TensorInfo& tensor : tensors) {
    if (takes_room(tensor)) by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->entry_offset < b->entry_offset;
  });
  return by_offset;
}

bool check_apart(Scan& scan, const Header& header) {
  if (in_order(header.tensors)) return true;
  const std::vector<const TensorInfo*> by_offset = by_offset_in_file(header.tensors);
  for (size_t i = 1; i < by_offset.size(); i++) {
    const TensorInfo& before = *by_offset[i - 1];
    if (by_offset[i]->offset < before.offset + before.n_bytes) {
      return overlap(scan, header.data_offset, before, *by_offset[i]);
    }
  }
  return true;
}

// PrismML's fork had type 42 before ggml gave the number to Q2_0.
constexpr uint32_t kReusedType = 42;
constexpr uint64_t kForkElements = 128, kForkBytes = 34;

/** The first tensor of type 42, if all tensors follow each other up to the end of the file with the fork's
 * blocks of that type, so that it can be nothing else; else nullptr. */
const TensorInfo* find_fork_tensor(const Header& header, bool partial) {
  const TensorInfo* found = nullptr;
  uint64_t end = 0;
  for (const TensorInfo* tensor : by_offset_in_file(header.tensors)) {
    uint64_t n_bytes = tensor->n_bytes;
    if (tensor->type == kReusedType) {
      if (tensor->n_elements % kForkElements != 0) return nullptr;
      n_bytes = tensor->n_elements / kForkElements * kForkBytes;
      if (found == nullptr || tensor->entry_offset < found->entry_offset) found = tensor;
    }
    uint64_t expected;
    if (!round_up(end, header.alignment, expected) || tensor->offset != expected) return nullptr;
    if (!add(tensor->offset, n_bytes, end)) return nullptr;
  }
  if (found == nullptr || partial) return found;
  // Writers pad the last tensor or do not.
  const uint64_t there = header.file_size - header.data_offset;
  uint64_t padded;
  return there >= end && round_up(end, header.alignment, padded) && there <= padded ? found : nullptr;
}

bool check_places(Scan& scan, bool partial, const Header& header) {
  for (const TensorInfo& tensor : header.tensors) {
    if (!check_extent(scan, partial, header, tensor)) return false;
  }
  return check_apart(scan, header);
}

}  // namespace

bool place_tensors(Scan& scan, bool partial, Header& header) {
  if (!find_data(scan, partial, header)) return false;
  if (!check_places(scan, partial, header)) {
    const TensorInfo* fork = find_fork_tensor(header, partial);
    if (fork == nullptr) return false;
    scan.kind = "tensor";
    scan.name = fork->name;
    return scan.unsupported(
        offset_field(scan.in, *fork),
        "the tensors of type 42 have blocks of 34 bytes for 128 weights, a layout of PrismML's "
        "fork; ggml has since given the number to another type: convert the model again");
  }
  for (TensorInfo& tensor : header.tensors) tensor.offset += header.data_offset;
  return true;
}

}  // namespace gguf
