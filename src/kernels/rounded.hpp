// SPDX-License-Identifier: Apache-2.0
// Conversions by a word that kernels do not know (D16): numbers are encoded by the word from float32, or rounded as
// float32 or float64, which are then of the target's numbers.
#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"
#include "kernels/rounding.hpp"

namespace tensorcast::kernels {

// One kind of conversion, for any number of blocks and threads.
class RoundedConversion {
 public:
  // Precondition: policy.has_word(), its scale is 1, and it demands no error.
  RoundedConversion(Target target, DType from, DType to, const codec::Policy& policy) noexcept;

  // As KernelFn. `first`: the place of the first element in its tensor.
  void run(const std::byte* src, std::byte* dst, std::size_t count, std::uint64_t first) const noexcept;

 private:
  // For what encode_by_word_ and kernels do not know.
  void choose_rounder(Target target) noexcept;

  DType from_, to_;
  codec::Policy policy_;  // of the last step; without the word if that rounds nothing
  RoundRule rule_;
  KernelFn decode_ = nullptr;
  NarrowFn narrow_ = nullptr;  // if neither is there, the source is read as it is
  // Rounds and encodes float32. If null, round_ rounds, unless encode_ knows the word.
  EncodeByWordFn encode_by_word_ = nullptr;
  RoundFn round_ = nullptr;
  KernelFn encode_ = nullptr;             // null: the rounded numbers are the result
  RandomWordsFn random_words_ = nullptr;  // null: the word is not stochastic
  std::uint64_t seed_ = 0;
};

}  // namespace tensorcast::kernels
