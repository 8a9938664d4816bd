// One pass over header bytes: the cursor, and the first thing that went wrong. The functions that read a
// header return false when they give up; why is in here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/cursor.h"
#include "core/limits.h"
#include "core/result.h"

namespace gguf {

struct Scan {
  explicit Scan(Cursor cursor) : in(cursor) {}

  Cursor in;
  Error error;
  bool need_more = false;  // the error is only that the bytes are not here
  bool stopped = false;    // no error: a visitor wanted no more
  const char* kind = "";   // what is being read, "key" or "tensor", for the error's detail
  std::string_view name;   // and its name
  uint64_t walked_elements_left = kMaxWalkedElements;
  // See ParseOptions.
  void (*passed)(const void* context, uint64_t begin, uint64_t end) = nullptr;
  const void* passed_context = nullptr;
  uint64_t passed_to = 0;  // where the range ends that `passed` was last told of

  /** Records a broken rule of the format; returns false. `what` comes after the name and a colon. */
  bool invalid(uint64_t offset, const std::string& what);
  /** Records that something reaches past the end of the file; returns false. */
  bool truncated(uint64_t offset, const std::string& what);
  /** Records that a visitor wants no more, which is no error; returns false. */
  bool stop() {
    stopped = true;
    return false;
  }
  /** Says that nothing before the cursor is needed any more, once that is much. Called after each entry,
     and within long values. */
  void let_go() {
    if (passed == nullptr || in.offset() - passed_to < kPassedBytes) return;
    passed(passed_context, passed_to, in.offset());
    passed_to = in.offset();
  }
  /** Records that the tensors are of a type that is not read; returns false. */
  bool unsupported(uint64_t offset, const std::string& what);
  /** Records why the cursor could not read `field`, which starts at `offset`; returns false. */
  bool short_of(uint64_t offset, const std::string& field);
  /** Records why the cursor could not take the string at which it is; returns false. */
  bool short_of_string(const std::string& field);

 private:
  std::string with_subject(const std::string& what) const;
};

}  // namespace gguf
