// SPDX-License-Identifier: Apache-2.0
// The results of all 2^32 float32 codes in a type: runs of equal results, each result taken from the oracle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle.hpp"

namespace oracle {

// Rounding changes its result only at the thresholds of a type (midpoints, or integers), so between two thresholds
// every code gives what the first one gives. From 2^12 on, integers change with every code or two; those results come
// from integer arithmetic.
class Runs {
 public:
  Runs(Type to, const tc_cast_options& options);

  // Results of the codes first, first + 1, ... one per element of `out`.
  template <class Code>
  void fill(std::uint32_t first, std::span<Code> out) const;

  [[nodiscard]] std::size_t count() const { return runs_.size(); }

 private:
  struct Run {
    std::uint32_t first;
    std::uint64_t result;
  };

  void add_thresholds(std::vector<std::uint32_t>& starts) const;
  [[nodiscard]] bool by_arithmetic(std::uint32_t code) const;
  template <class Code>
  void fill_integers(std::uint32_t first, std::span<Code> out) const;

  Type to_;
  tc_cast_options options_;
  std::vector<Run> runs_;
};

}  // namespace oracle
