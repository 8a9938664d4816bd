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

bool check_extent(Scan& scan, bool partial, const Header& header, TensorInfo& tensor) {
  const uint64_t stored = tensor.offset;
  const uint64_t n_bytes = takes_room(tensor) ? tensor.n_bytes : 0;
  uint64_t end;
  if (add(stored, header.data_offset, tensor.offset) && add(tensor.offset, n_bytes, end)) {
    if (partial || end <= header.file_size) return true;
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

bool overlap(Scan& scan, const TensorInfo& a, const TensorInfo& b) {
  const TensorInfo& first = a.entry_offset < b.entry_offset ? a : b;  // in the directory
  const TensorInfo& second = a.entry_offset < b.entry_offset ? b : a;
  const auto range = [](const TensorInfo& tensor) {
    return "bytes " + std::to_string(tensor.offset) + " to " + std::to_string(tensor.offset + tensor.n_bytes);
  };
  scan.kind = "tensor";
  scan.name = second.name;
  return scan.invalid(offset_field(scan.in, second), "its data, " + range(second) +
                                                         ", overlaps that of tensor " +
                                                         quote_name(first.name) + ", " + range(first));
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

bool check_apart(Scan& scan, const std::vector<TensorInfo>& tensors) {
  if (in_order(tensors)) return true;
  std::vector<const TensorInfo*> by_offset;
  for (const TensorInfo& tensor : tensors) {
    if (takes_room(tensor)) by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->entry_offset < b->entry_offset;
  });
  for (size_t i = 1; i < by_offset.size(); i++) {
    const TensorInfo& before = *by_offset[i - 1];
    if (by_offset[i]->offset < before.offset + before.n_bytes) return overlap(scan, before, *by_offset[i]);
  }
  return true;
}

}  // namespace

bool place_tensors(Scan& scan, bool partial, Header& header) {
  if (!find_data(scan, partial, header)) return false;
  for (TensorInfo& tensor : header.tensors) {
    if (!check_extent(scan, partial, header, tensor)) return false;
  }
  return check_apart(scan, header.tensors);
}

}  // namespace gguf
