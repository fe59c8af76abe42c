// SPDX-License-Identifier: Apache-2.0
#include "promote/lattice.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using NodeSet = std::uint64_t;
constexpr int node_count = 64;

// ONNX's types from 0 upward, others from the last node downward.
constexpr int first_own = static_cast<int>(DType::uint1), own_count = 16;
constexpr int node(DType dtype) {
  const int number = static_cast<int>(dtype);
  return number < first_own ? number : node_count - 1 - (number - first_own);
}
constexpr DType dtype_of(int number) {
  return static_cast<DType>(number < node_count - own_count ? number : first_own + (node_count - 1 - number));
}
constexpr NodeSet only(DType dtype) { return NodeSet{1} << node(dtype); }

bool contains(std::span<const DType> types, DType dtype) {
  return std::find(types.begin(), types.end(), dtype) != types.end();
}

// The node and all nodes above it.
NodeSet upward(const Lattice& lattice, DType from) {
  NodeSet reached = only(from);
  for (NodeSet before = 0; before != reached;) {
    before = reached;
    for (const Edge& edge : lattice.edges) {
      if ((reached & only(edge.lower)) != 0) reached |= only(edge.upper);
    }
  }
  for (const Edge& edge : lattice.direct_edges) {
    if (edge.lower == from) reached |= only(edge.upper);
  }
  return reached;
}

// The nodes of a set that are above no other node of it.
NodeSet lowest(const Lattice& lattice, NodeSet nodes) {
  NodeSet low = nodes;
  for (NodeSet rest = nodes; rest != 0; rest &= rest - 1) {
    const DType dtype = dtype_of(std::countr_zero(rest));
    low &= ~(upward(lattice, dtype) & ~only(dtype));
  }
  return low;
}

}  // namespace

DType common_type(const Lattice& lattice, DType a, DType b) {
  if (a == b) return a;
  NodeSet low = lowest(lattice, upward(lattice, a) & upward(lattice, b));
  if (lattice.integer_first && std::popcount(low) > 1) {
    for (NodeSet rest = low; rest != 0; rest &= rest - 1) {
      const DType dtype = dtype_of(std::countr_zero(rest));
      if (is_castable(dtype) && family(dtype) != Family::integer) low &= ~only(dtype);
    }
  }
  if (std::popcount(low) != 1) return DType::undefined;
  const DType common = dtype_of(std::countr_zero(low));
  if (common == any_float) return lattice.float_for_any;
  const bool bound = contains(lattice.operand_only, a) || contains(lattice.operand_only, b);
  return bound && common != a && common != b ? DType::undefined : common;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
