// SPDX-License-Identifier: Apache-2.0
// Promotion by a lattice: types, and edges from each to those directly above it. The common type of two types is the
// lowest type above both.
#pragma once

#include <span>
#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct Edge {
  DType lower;
  DType upper;
};

// A node that is not a type: "some float", below every float that it has an edge to.
inline constexpr DType any_float = DType::undefined;

struct Lattice {
  std::span<const DType> types;
  std::span<const Edge> edges;  // a type above the upper end is above the lower end too
  // Edges from an operand to its partner only: they do not continue.
  std::span<const Edge> direct_edges = {};
  // Types whose common type with another, if any, is one of the two.
  std::span<const DType> operand_only = {};
  // The common type of a pair whose lowest common node is any_float; undefined: none.
  DType float_for_any = DType::undefined;
  // If an integer and a float are both lowest, the integer is the common type.
  bool integer_first = false;
};

// Returns the common type; undefined if there is none. Precondition: both are in lattice.types.
[[nodiscard]] DType common_type(const Lattice& lattice, DType a, DType b);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
