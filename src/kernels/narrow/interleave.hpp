// Planes of bytes or words to whole outputs, in registers of any width. Everything has internal linkage, because each
// source that includes this is compiled for an instruction set of its own.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/narrow/layout.hpp"

namespace tensorcast::kernels::narrow {
namespace {

// Unpack is what a target has for it: Vector, and low and high, which merge the low or high units of each lane of 128
// bits.
template <class Unpack>
struct Registers {
  typename Unpack::Vector v[8];
};

// Merges planes two by two until each register holds whole outputs, in order within each 128-bit lane. `rows` registers
// of each plane exist so far; the first `zeros` planes are zero.
template <class Unpack, int planes, int unit_bytes, int zeros, int rows = 1>
inline Registers<Unpack> interleave(const Registers<Unpack>& in) {
  using Vector = typename Unpack::Vector;
  if constexpr (planes == 1) {
    return in;
  } else {
    Registers<Unpack> out;
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int pair = 0; pair < planes / 2; ++pair) {
        const Vector low = in.v[row * planes + 2 * pair];
        const Vector high = in.v[row * planes + 2 * pair + 1];
        const bool zero = 2 * pair + 1 < zeros;
        Vector* merged = &out.v[row * planes + pair];
        merged[0] = zero ? Vector{} : Unpack::template low<unit_bytes>(low, high);
        merged[planes / 2] = zero ? Vector{} : Unpack::template high<unit_bytes>(low, high);
      }
    }
    return interleave<Unpack, planes / 2, unit_bytes * 2, zeros / 2, rows * 2>(out);
  }
}

constexpr Layout finite_part(Layout layout) {
  layout.table_units = layout.finite_units;
  layout.finite_units = 0;
  return layout;
}

// All planes of one register of indices, interleaved; `look_up` gives those that the table has, by a number that is
// known at compile time.
template <Layout layout, class Unpack, class LookUp>
inline Registers<Unpack> interleaved_planes(const LookUp& look_up) {
  constexpr int planes = layout.output_units();
  Registers<Unpack> units;
  [&]<int... i>(std::integer_sequence<int, i...>) {
    const auto unit = [&]<int number>(std::integral_constant<int, number>) {
      constexpr int looked_up = number - layout.zero_units;
      if constexpr (looked_up < 0) {
        return typename Unpack::Vector{};
      } else if constexpr (looked_up < layout.table_units) {
        return look_up(std::integral_constant<int, looked_up>());
      } else {
        return units.v[number - 1];
      }
    };
    ((units.v[i] = unit(std::integral_constant<int, i>())), ...);
  }(std::make_integer_sequence<int, planes>());
  return interleave<Unpack, planes, layout.unit_bytes(), layout.zero_units>(units);
}

}  // namespace
}  // namespace tensorcast::kernels::narrow
