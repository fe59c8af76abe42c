// SPDX-License-Identifier: Apache-2.0
// Reports of conversions: a Reporter adds pieces to accumulators and makes a CastReport of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/policy.hpp"
#include "kernels/compare.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::report {

// All pieces of an accumulator but the last have a multiple of this many elements.
inline constexpr std::size_t piece_multiple = 64;

// Converted elements and their sources.
struct ConvertedPiece {
  const std::byte* source = nullptr;
  const std::byte* result = nullptr;
  std::size_t count = 0;
  std::uint64_t first = 0;  // the place of the first element in its tensor
};

// How often each byte or half a byte occurs. There are several tables, as counting a byte twice in a row waits for the
// first count.
struct ByteCounts {
  static constexpr std::size_t tables = 4;
  std::array<std::array<std::uint64_t, 256>, tables> bytes = {};
  std::array<std::uint64_t, 16> nibbles = {};
  std::array<std::uint64_t, 256> codes = {};  // elements that do not fill a byte
};

// The counts and sums of some of the elements. Each task has one; they are merged in a fixed order, so that equal
// inputs have equal reports.
struct ReportAccumulator {
  std::uint64_t elements = 0;
  kernels::CompareSums sums;
  CastReport by_reference;             // elements that only the reference can judge
  std::unique_ptr<ByteCounts> counts;  // of sources of up to 8 bits; null before the first

  void merge(const ReportAccumulator& other);
};

// Observes one kind of conversion. Any number of threads may use it, each with an accumulator of its own.
class Reporter {
 public:
  // Precondition: both types are numeric or bool.
  Reporter(DType from, DType to, const codec::Policy& policy, Target target = active_target());

  // Adds the elements of `piece` to `accumulator`. Sums have a fixed order, which depends on neither target nor the
  // size of pieces.
  void add(const ConvertedPiece& piece, ReportAccumulator& accumulator) const;
  [[nodiscard]] CastReport report(const ReportAccumulator& accumulator) const;
  // Reports whether a result may differ from its source. False is always right: -0 equals 0, and a NaN every NaN.
  // Preconditions: the policy has no word, and the target is not bool.
  [[nodiscard]] bool finds_change(const ConvertedPiece& piece) const;

 private:
  enum class Method : std::uint8_t { histogram, float32, float64, sums, reference };

  template <class Function>
  void for_each_block(const ConvertedPiece& piece, std::size_t elements, Function function) const;
  void add_to_histogram(const ConvertedPiece& piece, ByteCounts& counts) const;
  [[nodiscard]] bool all_in_range(const ConvertedPiece& block) const;
  void compare(const ConvertedPiece& block, ReportAccumulator& accumulator) const;
  void compare_sums(const ConvertedPiece& block, ReportAccumulator& accumulator) const;
  void add_by_reference(const ConvertedPiece& block, CastReport& report) const;
  void add_byte_counts(const ByteCounts& counts, CastReport& report) const;

  DType from_;
  DType to_;
  codec::Policy policy_;
  Target target_;
  Method method_;
  bool loses_signs_;
  bool has_word_;                    // the reference judges parts with numbers out of range
  kernels::Interval in_range_ = {};  // of words
  kernels::CompareRules rules_;
};

}  // namespace tensorcast::report
