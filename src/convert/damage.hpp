// When a conversion destroys a tensor, and what would help. The thresholds stand here and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensorcast/cast.hpp"

namespace tensorcast::convert {

struct Damage {
  std::string what;    // "22 of 24 nonzero elements became zero"
  std::string remedy;  // what would help; backquotes as in Error::hint
};

// False if `to` has a value near every value of `from`, so that no report is needed to know that nothing is destroyed.
[[nodiscard]] bool may_damage(DType from, DType to, const CastOptions& options) noexcept;

// Elements that are not zero; NaN counts. `data` is packed storage of numbers or bools.
[[nodiscard]] std::uint64_t count_nonzero(DType dtype, std::span<const std::byte> data, std::size_t count) noexcept;

struct NonzeroCounts {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

// The gravest damage of a conversion.
[[nodiscard]] std::optional<Damage> find_damage(const CastReport& report, const NonzeroCounts& nonzero, DType from,
                                                DType to);

}  // namespace tensorcast::convert
