// SPDX-License-Identifier: Apache-2.0
// The numbers of a weight as its recipe sees them, and which of them it refuses.
#pragma once

#include <cstddef>
#include <vector>

#include "block/recipe/recipe.hpp"
#include "block/tuning.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast::block {

class WeightNumbers {
 public:
  WeightNumbers() = default;
  // `words` and `recipe` are rows of tables. `computed`: the type that numbers of the type `stored` are rounded to
  // first.
  WeightNumbers(DType stored, DType computed, const QuantizeRecipe& words, const Recipe& recipe,
                NonFiniteWeights nonfinite) noexcept;

  [[nodiscard]] DType computed() const noexcept { return computed_; }
  // What the kernels read: the stored type, or float32.
  [[nodiscard]] DType read() const noexcept { return read_; }
  // Reports whether the kernels read the weight's own numbers.
  [[nodiscard]] bool are_in_place() const noexcept { return stored_ == read_ && !is_rounded(); }
  [[nodiscard]] std::size_t bytes(std::size_t count) const noexcept { return storage_bytes(stored_, count); }
  [[nodiscard]] std::size_t piece() const noexcept {
    return read_ == DType::bfloat16 ? piece_numbers : piece_numbers / 2;
  }

  // Numbers `first` and on of those at `numbers`, in float32.
  void load(const std::byte* numbers, std::size_t first, std::size_t count, float* out) const noexcept;
  // The same, at most piece() of them, in the type read(): where they are, if they are of it.
  [[nodiscard]] const std::byte* at(const std::byte* numbers, std::size_t first, std::size_t count,
                                    std::vector<float>& buffer) const {
    if (are_in_place()) return numbers + bytes(first);
    buffer.resize(piece());
    load(numbers, first, count, buffer.data());
    return reinterpret_cast<const std::byte*>(buffer.data());
  }
  // The largest magnitude. Errors: out_of_range: NaN or infinity; the element counts from `numbers`.
  [[nodiscard]] Result<float> maximum(const std::byte* numbers, std::size_t count, const Execution& execution) const;

  [[nodiscard]] bool refuses(float x) const noexcept { return has(refused_, x); }
  [[nodiscard]] bool refuses_all() const noexcept { return refused_ == UnspecifiedInputs::both; }
  [[nodiscard]] bool refuses_none() const noexcept { return refused_ == UnspecifiedInputs::none; }
  // The error of the first number that is refused.
  [[nodiscard]] Error refusal(const std::byte* numbers, std::size_t count) const;

 private:
  [[nodiscard]] bool is_rounded() const noexcept { return computed_ != stored_ && computed_ != DType::float32; }

  DType stored_ = DType::undefined, computed_ = DType::undefined, read_ = DType::float32;
  UnspecifiedInputs refused_ = UnspecifiedInputs::both;  // an error
  UnspecifiedInputs undefined_ = UnspecifiedInputs::none;
  std::string_view recipe_;
};

}  // namespace tensorcast::block
