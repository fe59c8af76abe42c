// SPDX-License-Identifier: Apache-2.0
// Decides whether a conversion destroys a tensor, and suggests a remedy. All thresholds are here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/format.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

struct Damage {
  std::string what;    // "22 of 24 nonzero elements became zero"
  std::string remedy;  // a suggestion; backquotes as in Error::hint
  // Nothing of the tensor is left: over half of its nonzero elements became zero, or a scheme made NaN or infinity
  // where there was none.
  bool destroys = false;
};

// Returns false if `to` has a value near every value of `from`, infinities and NaN included: the conversion then needs
// no report.
[[nodiscard]] TENSORCAST_API bool may_damage(DType from, DType to, const CastOptions& options) noexcept;

// The same of numbers whose magnitudes are known.
[[nodiscard]] bool may_damage(const formats::Magnitudes& numbers, DType to) noexcept;

// Counts elements other than zero; NaN counts. `data` is packed storage of numbers or bools.
[[nodiscard]] std::uint64_t count_nonzero(DType dtype, std::span<const std::byte> data, std::size_t count) noexcept;

struct NonzeroCounts {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

// Returns the gravest damage of a conversion.
[[nodiscard]] TENSORCAST_API std::optional<Damage> find_damage(const CastReport& report, const NonzeroCounts& nonzero,
                                                               DType from, DType to);

// The same of a weight that was quantized, whose largest elements are expected to saturate. `was_finite`: it had no NaN
// and no infinity.
[[nodiscard]] std::optional<Damage> find_quantizing_damage(const CastReport& report, const NonzeroCounts& nonzero,
                                                           bool was_finite);

// Returns what a strict conversion does not allow: any damage; an element that overflowed, saturated, or lost a NaN or
// an infinity; nonzero elements that became zero, beyond the share `zero_limit` of them.
[[nodiscard]] std::optional<Damage> find_loss(const CastReport& report, const NonzeroCounts& nonzero, DType from,
                                              DType to, double zero_limit);

// Returns the damage if it is to be told. Errors: out_of_range: the settings refuse it.
[[nodiscard]] Result<std::optional<Damage>> judge(const ConversionSettings& settings, std::optional<Damage> damage);

}  // namespace tensorcast::file_conversion
