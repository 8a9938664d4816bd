// The tensor directory, entries back to back:
//
//   name: length, bytes | n_dims: u32 | dims: length[n_dims] | type: u32 | offset: u64
//
// The offset counts from the start of the tensor data, and has eight bytes in version 1 too.
#include <algorithm>
#include <string>

#include "core/checked.h"
#include "core/parse_steps.h"

namespace gguf {

namespace {

/** Dimensions, elements and bytes stay below this, so that they fit in a signed 64-bit number. */
constexpr uint64_t kSizeLimit = uint64_t{1} << 63;

std::string shape_text(const TensorInfo& tensor) {
  std::string text = "[";
  for (uint32_t i = 0; i < tensor.n_dims; i++) text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  return text + "]";
}

bool parse_shape(Scan& scan, TensorInfo& tensor) {
  const uint64_t n_dims_offset = scan.in.offset();
  if (!scan.in.read(tensor.n_dims)) return scan.short_of(n_dims_offset, "the number of dimensions");
  if (tensor.n_dims > TensorInfo::kMaxDims) {
    return scan.invalid(n_dims_offset, "it has " + std::to_string(tensor.n_dims) + " dimensions; at most " +
                                           std::to_string(TensorInfo::kMaxDims) + " are allowed");
  }
  std::fill_n(tensor.shape, TensorInfo::kMaxDims, 1);
  // A dimension of 0 counts as 1 until the end: whoever multiplies only some of the dimensions must not
  // overflow either.
  uint64_t product = 1;
  bool empty = false;
  for (uint32_t i = 0; i < tensor.n_dims; i++) {
    const uint64_t offset = scan.in.offset();
    uint64_t& dim = tensor.shape[i];
    if (!scan.in.read_length(dim)) return scan.short_of(offset, "dimension " + std::to_string(i));
    if (dim >= kSizeLimit) {
      return scan.invalid(offset,
                          "dimension " + std::to_string(i) + " is " + std::to_string(dim) + ", 2^63 or more");
    }
    empty |= dim == 0;
    if (!multiply_below(kSizeLimit, product, std::max<uint64_t>(dim, 1), product)) {
      return scan.invalid(offset, "its dimensions multiply to 2^63 or more: dimension " + std::to_string(i) +
                                      " is " + std::to_string(dim) + ", those before it make " +
                                      std::to_string(product));
    }
  }
  tensor.n_elements = empty ? 0 : product;
  return true;
}

/** Reads the type; sets n_bytes. `shape_offset` is where the dims start. */
bool parse_type(Scan& scan, uint64_t shape_offset, TypeSizeOf type_size, TensorInfo& tensor) {
  const uint64_t offset = scan.in.offset();
  if (!scan.in.read(tensor.type)) return scan.short_of(offset, "the tensor type");
  const TypeSize block = type_size(tensor.type);
  tensor.n_bytes = TensorInfo::kUnknownSize;
  if (block.block_bytes == 0) return true;  // unknown or removed: listed all the same
  if (tensor.shape[0] % block.block_elements != 0) {
    return scan.invalid(shape_offset, "its rows have " + std::to_string(tensor.shape[0]) +
                                          " elements, not a multiple of the " +
                                          std::to_string(block.block_elements) + " in a block of type " +
                                          std::to_string(tensor.type));
  }
  const uint64_t n_blocks = tensor.n_elements / block.block_elements;
  if (!multiply_below(kSizeLimit, n_blocks, block.block_bytes, tensor.n_bytes)) {
    return scan.invalid(shape_offset, "shape " + shape_text(tensor) + " of type " +
                                          std::to_string(tensor.type) + " takes 2^63 bytes or more");
  }
  return true;
}

bool parse_offset(Scan& scan, uint64_t alignment, TensorInfo& tensor) {
  const uint64_t start = scan.in.offset();
  if (!scan.in.read(tensor.offset)) return scan.short_of(start, "the offset of its data");
  if (tensor.offset % alignment == 0) return true;
  return scan.invalid(start, "the offset of its data is " + std::to_string(tensor.offset) +
                                 ", not a multiple of the alignment " + std::to_string(alignment));
}

bool parse_tensor(Scan& scan, uint32_t index, TypeSizeOf type_size, Header& header) {
  TensorInfo tensor = {};
  tensor.entry_offset = scan.in.offset();
  if (!parse_name(scan, "tensor", index, 0, kMaxTensorNameBytes, header.names, header.replaced_tensors,
                  tensor.name))
    return false;
  const auto name_at = [&header](uint32_t position) { return header.tensors[position].name; };
  if (const auto first = header.tensor_index.insert(tensor.name, index, name_at)) {
    return scan.invalid(tensor.entry_offset, "there are two tensors of this name, number " +
                                                 std::to_string(*first) + " and number " +
                                                 std::to_string(index));
  }
  const uint64_t shape_offset = scan.in.offset() + sizeof tensor.n_dims;
  if (!parse_shape(scan, tensor) || !parse_type(scan, shape_offset, type_size, tensor) ||
      !parse_offset(scan, header.alignment, tensor)) {
    return false;
  }
  header.tensors.push_back(tensor);
  return true;
}

}  // namespace

bool parse_tensors(Scan& scan, uint64_t n_tensors, TypeSizeOf type_size, Header& header) {
  // Once more, now that the metadata has taken its part of the file.
  if (n_tensors > scan.in.remaining() / smallest_tensor_bytes(scan.in)) {
    return scan.truncated(scan.in.offset(), std::to_string(n_tensors) + " tensors do not fit in the " +
                                                std::to_string(scan.in.remaining()) + " bytes that are left");
  }
  const uint64_t n_expected = std::min(n_tensors, kMaxTrustedEntries);
  header.tensors.reserve(to_size(n_expected));
  header.tensor_index.reserve(n_expected);
  for (uint64_t i = 0; i < n_tensors; i++) {
    if (!parse_tensor(scan, static_cast<uint32_t>(i), type_size, header)) return false;
    scan.let_go();
  }
  scan.kind = "";
  return true;
}

}  // namespace gguf
