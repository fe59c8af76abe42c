// SPDX-License-Identifier: Apache-2.0
// Component files. Whether a conversion destroys a tensor, and what would help: what convert_file() says of every
// tensor, for programs that convert their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct Damage {
  std::string what;    // "22 of 24 nonzero elements became zero"
  std::string remedy;  // a suggestion; backquotes as in Error::hint
  // Nothing of the tensor is left: over half of its nonzero elements became zero, or a scheme made NaN or infinity
  // where there was none.
  bool destroys = false;
};

// Elements other than zero; NaN counts.
struct NonzeroCounts {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

// Returns false if `to` has a value near every value of `from`, infinities and NaN included: the conversion then needs
// no report.
[[nodiscard]] TENSORCAST_API bool may_damage(DType from, DType to, const CastOptions& options = {}) noexcept;

// Returns the gravest damage of a conversion; nullopt: there is none.
[[nodiscard]] TENSORCAST_API std::optional<Damage> find_damage(const CastReport& report, const NonzeroCounts& nonzero,
                                                               DType from, DType to);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
