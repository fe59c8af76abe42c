// Promotion by a picture: types, and edges from each to those directly above it. The common type of two types is the
// lowest type that stands above both.
#pragma once

#include <span>
#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast {

struct Edge {
  DType lower;
  DType upper;
};

// A node that is no type: "some float", which stands below every float that it has an edge to.
inline constexpr DType any_float = DType::undefined;

struct Lattice {
  std::span<const DType> types;
  std::span<const Edge> edges;  // who stands above the upper end stands above the lower end too
  // Edges that lead from an operand to its partner and no further.
  std::span<const Edge> direct_edges = {};
  // Types whose common type with another is one of the two, or there is none.
  std::span<const DType> operand_only = {};
  // What a pair gets whose lowest common node is any_float; undefined: it has no common type.
  DType float_for_any = DType::undefined;
  // Where an integer and a float are both lowest, the integer is meant.
  bool integer_first = false;
};

// undefined: there is none. Precondition: both are in lattice.types.
[[nodiscard]] DType common_type(const Lattice& lattice, DType a, DType b);

}  // namespace tensorcast
