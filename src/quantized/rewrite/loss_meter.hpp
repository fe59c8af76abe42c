// SPDX-License-Identifier: Apache-2.0
// Measures what a weight loses while it is quantized: its rows are decoded again and compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quantized/rewrite/damage.hpp"
#include "report/reporter.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast::quantized {

// What rows of a quantized weight mean.
struct RecoveredRows {
  std::vector<float> numbers;
  std::uint64_t saturated = 0;  // as SchemeFit
};
// Decodes the rows from `first` on that were made of `numbers`, on this thread. `shape`: of these rows.
[[nodiscard]] Result<RecoveredRows> recover(const BlockTensor& made, std::uint64_t first, const Shape& shape,
                                            std::span<const float> numbers);

// The report of a conversion to codes and back. Sums of squares have seven good digits.
struct QuantizedLoss {
  CastReport report;  // `saturated`: as SchemeFit
  NonzeroCounts nonzero;
  bool was_finite = true;  // the weight had no NaN and no infinity
};

class LossMeter {
 public:
  // `rows`: of all matrices of the weight.
  LossMeter(DType numbers, std::uint64_t rows)
      : numbers_(numbers), rows_(rows), reporter_(DType::float32, DType::float32, {}) {}

  // Measures rows that follow those before, once; other rows are left out. `made` was made of `source`.
  [[nodiscard]] Result<void> add(std::uint64_t first, std::uint64_t rows, std::span<const std::byte> source,
                                 const BlockTensor& made, const Execution& execution);
  [[nodiscard]] bool is_complete() const noexcept { return next_row_ == rows_; }
  [[nodiscard]] QuantizedLoss loss() const;

 private:
  struct Part {
    report::ReportAccumulator accumulator;
    std::uint64_t saturated = 0, nonzero = 0;
    bool is_finite = true;
  };
  [[nodiscard]] Result<void> measure(std::uint64_t first, std::span<const std::byte> source, const BlockTensor& made,
                                     Part& part) const;

  DType numbers_;
  std::uint64_t rows_;
  std::uint64_t next_row_ = 0;
  report::Reporter reporter_;
  Part sum_;
};

}  // namespace tensorcast::quantized
