// What a call gives back that is more than a number: columns of numbers or text, or an error. The caller
// frees it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace gguf {

class Reply {
 public:
  struct Column {
    const void* data;
    uint32_t n_bytes;
    std::shared_ptr<const void> owner;
  };

  Reply() = default;
  /** An error: its columns are the code, the text and, if it has one, the offset. */
  explicit Reply(const Error& error) : is_error_(true) {
    add(std::string(error_code_name(error.code)));
    add(error.detail);
    std::vector<double> offset;
    if (error.offset != Error::kNoOffset) offset.push_back(static_cast<double>(error.offset));
    add(std::move(offset));
  }

  /** Adds a string or a vector of numbers as the next column. */
  template <class Values>
  void add(Values values) {
    auto held = std::make_shared<const Values>(std::move(values));
    const void* const data = held->data();
    const auto n_bytes = static_cast<uint32_t>(held->size() * sizeof(typename Values::value_type));
    columns_.push_back({data, n_bytes, std::move(held)});
  }

  bool is_error() const { return is_error_; }
  const std::vector<Column>& columns() const { return columns_; }

 private:
  const bool is_error_ = false;
  std::vector<Column> columns_;
};

}  // namespace gguf
