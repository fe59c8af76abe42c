// SPDX-License-Identifier: Apache-2.0
// Decides whether a conversion destroys a tensor, and suggests a remedy. All thresholds are here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "formats/format.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/damage.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// may_damage() of numbers whose magnitudes are known.
[[nodiscard]] bool may_damage(const formats::Magnitudes& numbers, DType to) noexcept;

// Counts elements other than zero; NaN counts. `data` is packed storage of numbers or bools.
[[nodiscard]] std::uint64_t count_nonzero(DType dtype, std::span<const std::byte> data, std::size_t count) noexcept;

// find_damage() of a weight that was quantized, whose largest elements are expected to saturate. `was_finite`: it had
// no NaN and no infinity.
[[nodiscard]] std::optional<Damage> find_quantizing_damage(const CastReport& report, const NonzeroCounts& nonzero,
                                                           bool was_finite);

// Returns what a strict conversion does not allow: any damage; an element that overflowed, saturated, or lost a NaN or
// an infinity; nonzero elements that became zero, beyond the share `zero_limit` of them.
[[nodiscard]] std::optional<Damage> find_loss(const CastReport& report, const NonzeroCounts& nonzero, DType from,
                                              DType to, double zero_limit);

// Returns the damage if it is to be told. Errors: out_of_range: the settings refuse it.
[[nodiscard]] Result<std::optional<Damage>> judge(const ConversionSettings& settings, std::optional<Damage> damage);

}  // namespace tensorcast::file_conversion
