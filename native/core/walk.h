// Walks over one metadata value: the rules of the format for values and arrays, in one place for both users.
// Opening a file walks with no visitor, and only checks; decoding a value walks with one.
#pragma once

#include <cstdint>

#include "core/header.h"
#include "core/scan.h"

namespace gguf {

class ValueVisitor;

/** Reads a value type, checking that it is a known one. `role` names it in errors: "value type". */
bool read_value_type(Scan& scan, const char* role, ValueType& type);

/** Reads what comes before the elements of an array. The count is bounded by the bytes that remain. */
bool read_array_head(Scan& scan, ValueType& element_type, uint64_t& count);

/** Walks over a value that is not an array. `visitor` may be nullptr. */
bool walk_value(Scan& scan, ValueType type, ValueVisitor* visitor);

/**
 * Walks over the elements of an array, those of arrays in it included, without recursion. `visitor` may be
 * nullptr; it receives begin_array and end_array of inner arrays only.
 */
bool walk_elements(Scan& scan, ValueType element_type, uint64_t count, ValueVisitor* visitor);

}  // namespace gguf
