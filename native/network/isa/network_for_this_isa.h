// The common part of all instruction sets. Each file of isa/ includes this once, inside its target region. It
// compiles every kernel for that set and defines their table, `kThisIsa`.
#pragma once

#include "network/attention.h"
#include "network/kernels.h"
#include "network/vectors.h"

namespace gguf {
namespace {

template <size_t... kNumbers>
constexpr NetworkKernels network_of_this_isa(std::index_sequence<kNumbers...>) {
  return {simd::kName,
          rms_norm,
          layer_norm,
          normalize,
          softmax,
          powers,
          {activate<static_cast<Activation>(kNumbers)>...},
          add,
          scale,
          {rotate<Pairs::kAdjacent>, rotate<Pairs::kHalves>},
          attend};
}

constexpr NetworkKernels kThisIsa = network_of_this_isa(std::make_index_sequence<kActivations>());

}  // namespace
}  // namespace gguf
