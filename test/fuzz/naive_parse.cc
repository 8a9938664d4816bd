#include "test/fuzz/naive_parse.h"

#include <set>
#include <string>

#include "dequant/dequant.h"
#include "test/fuzz/gguf_fields.h"

namespace gguf::fuzz {

namespace {

__extension__ using Wide = unsigned __int128;

struct Broken {};

void require(bool rule) {
  if (!rule) throw Broken();
}

struct Extent {
  Wide begin, end;
};

class Reader {
 public:
  Reader(const uint8_t* bytes, size_t n_bytes, bool partial)
      : bytes_(bytes), n_bytes_(n_bytes), partial_(partial) {}

  void read(NaiveFile& file) {
    require(text(4) == "GGUF");
    require(n_bytes_ >= 8);
    big_endian_ = bytes_[4] == 0 && bytes_[5] == 0 && (bytes_[6] != 0 || bytes_[7] != 0);
    const uint64_t version = number(4);
    require(version >= 1 && version <= 3);
    length_bytes_ = version == 1 ? 4 : 8;
    const uint64_t n_tensors = number(length_bytes_);
    const uint64_t n_keys = number(length_bytes_);
    for (uint64_t i = 0; i < n_keys; i++) file.keys.push_back(read_key());
    names_.clear();
    for (uint64_t i = 0; i < n_tensors; i++) file.tensors.push_back(read_tensor());
    place(file);
    file.good = true;
  }

 private:
  uint64_t number(size_t width) {
    require(width <= n_bytes_ - at_);
    at_ += width;
    return read_number(bytes_ + at_ - width, width, big_endian_);
  }
  std::string text(uint64_t n) {
    require(n <= n_bytes_ - at_);
    at_ += static_cast<size_t>(n);
    return std::string(reinterpret_cast<const char*>(bytes_) + at_ - n, static_cast<size_t>(n));
  }

  NaiveKey read_key() {
    const std::string name = text(number(length_bytes_));
    require(!name.empty() && name.size() <= 65535 && names_.insert(name).second);
    const uint64_t type = number(4);
    uint64_t begin = at_;
    if (name == "general.alignment") {
      require(type == 4);
      alignment_ = number(4);
      require(alignment_ != 0 && (alignment_ & (alignment_ - 1)) == 0);
      has_alignment_ = true;
    } else if (type == 9) {
      begin = read_array(1);
    } else {
      read_value(type);
    }
    return {begin, at_};
  }

  /** Returns where the elements begin. */
  uint64_t read_array(int depth) {
    require(depth <= 64);
    const uint64_t type = number(4);
    require(type <= 12);
    const uint64_t count = number(length_bytes_);
    const uint64_t begin = at_;
    for (uint64_t i = 0; i < count; i++)
      type == 9 ? static_cast<void>(read_array(depth + 1)) : read_value(type);
    return begin;
  }

  void read_value(uint64_t type) {
    switch (type) {
      case 7:
        require(number(1) <= 1);
        break;
      case 8:
        text(number(length_bytes_));
        break;
      case 0:
      case 1:
        number(1);
        break;
      case 2:
      case 3:
        number(2);
        break;
      case 4:
      case 5:
      case 6:
        number(4);
        break;
      case 10:
      case 11:
      case 12:
        number(8);
        break;
      default:
        throw Broken();
    }
  }

  NaiveTensor read_tensor() {
    constexpr Wide kLimit = Wide{1} << 63;
    const std::string name = text(number(length_bytes_));
    require(name.size() <= size_t{1} << 20 && names_.insert(name).second);
    const uint64_t n_dims = number(4);
    require(n_dims <= 4);
    Wide product = 1, row = 1;
    bool empty = false;
    for (uint64_t i = 0; i < n_dims; i++) {
      const uint64_t dim = number(length_bytes_);
      require(dim < kLimit);
      if (i == 0) row = dim;
      if (dim == 0) empty = true;
      product *= dim == 0 ? 1 : dim;
      require(product < kLimit);
    }
    if (empty) product = 0;
    const uint64_t type = number(4);
    const uint64_t offset = number(8);
    require(offset % alignment_ == 0);
    Wide n_bytes = 0;  // of a type that is not known: only its start is
    for (const Format& format : formats()) {
      if (format.id != type) continue;
      require(row % format.block_elements == 0);
      n_bytes = product / format.block_elements * format.block_bytes;
      require(n_bytes < kLimit);
    }
    extents_.push_back({offset, offset + n_bytes});
    return {offset, static_cast<uint64_t>(product)};
  }

  void place(NaiveFile& file) {
    const Wide start = (Wide{at_} + alignment_ - 1) / alignment_ * alignment_;
    // A file without tensors needs no padding, but an alignment that it sets itself has to make sense.
    if (!partial_ && start > n_bytes_) require(file.tensors.empty() && !has_alignment_);
    for (const Extent& extent : extents_) {
      require(start + extent.end <= UINT64_MAX);
      require(partial_ || start + extent.end <= n_bytes_);
    }
    for (size_t i = 0; i < extents_.size(); i++) {
      for (size_t k = 0; k < i; k++) {
        const Extent &a = extents_[i], &b = extents_[k];
        const bool both = a.begin < a.end && b.begin < b.end;
        require(!both || a.end <= b.begin || b.end <= a.begin);
      }
    }
    for (NaiveTensor& tensor : file.tensors) tensor.offset += static_cast<uint64_t>(start);
  }

  const uint8_t* bytes_;
  size_t n_bytes_;
  bool partial_;
  size_t at_ = 0;
  bool big_endian_ = false;
  size_t length_bytes_ = 8;
  uint64_t alignment_ = 32;
  bool has_alignment_ = false;
  std::set<std::string> names_;
  std::vector<Extent> extents_;
};

}  // namespace

NaiveFile naive_parse(const uint8_t* bytes, size_t n_bytes, bool partial) {
  NaiveFile file;
  try {
    Reader(bytes, n_bytes, partial).read(file);
  } catch (const Broken&) {
  }
  return file;
}

}  // namespace gguf::fuzz
