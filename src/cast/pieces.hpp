// SPDX-License-Identifier: Apache-2.0
// One conversion, piece by piece: each piece is converted, scanned if the request asks for it, and stored.
//
//   convert   Converter writes to the target or, to bypass the cache, to a buffer; some kernels scan meanwhile
//   scan      strict: if an element may fail, the reference converts the piece and names the first that does
//             report: compares the results with the sources
//   store     writes the buffer to memory
//
// Pieces stay in the first-level cache from stage to stage. Stages do not depend on each other.
#pragma once

#include <cstdint>
#include <optional>

#include "cast/converter.hpp"
#include "cast/tuning.hpp"
#include "kernels/ops.hpp"
#include "report/reporter.hpp"
#include "report/strict_scan.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// How results reach memory. `tuned`: as tuning.hpp says; the others are for bench/stores.
enum class Stores : std::uint8_t { tuned, bypass_cache, through_cache };

// The stages of one request. Several threads may convert tasks of it.
class Pieces {
 public:
  // `reporter`: null without a report; else it outlives this object.
  Pieces(const Conversion& whole, const codec::Policy& policy, const report::Reporter* reporter,
         Stores stores = Stores::tuned);

  // Converts a part that begins at a multiple of piece_granule. `accumulator`: null without a report.
  // Errors: out_of_range with the first element that fails of the part.
  [[nodiscard]] Result<void> convert(const Conversion& part, report::ReportAccumulator* accumulator) const;

 private:
  void choose_stores(const Conversion& whole, Stores stores);
  // The pages of the target exist, or are not worth a call.
  [[nodiscard]] Result<void> convert_present(const Conversion& part, report::ReportAccumulator* accumulator) const;
  [[nodiscard]] Result<void> convert_pieces(const Conversion& part, report::ReportAccumulator* accumulator) const;
  [[nodiscard]] Result<void> convert_and_scan(const Conversion& piece, report::ReportAccumulator* accumulator) const;

  codec::Policy policy_;
  const kernels::Ops* ops_;
  const report::Reporter* reporter_;
  Converter converter_;
  std::optional<report::StrictScan> strict_;
  std::optional<report::Reporter> changes_;  // of inexact=error, instead of the scan
  bool is_scanned_ = false;
  bool bypasses_cache_ = false;
  bool populates_ = false;          // the target's pages, before they are written
  std::size_t piece_elements_ = 0;  // 0: all at once
  std::size_t prefetch_pieces_ = 0;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
