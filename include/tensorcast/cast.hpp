// SPDX-License-Identifier: Apache-2.0
// Component core. Casts between any two types, exactly as ONNX Cast 1 to 28 define it (docs/semantics.md).
#pragma once

#include <cstdint>
#include <vector>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The newest opset whose Cast the library knows, which is the default of CastOptions::opset.
[[nodiscard]] TENSORCAST_API int newest_opset() noexcept;

// Enumerator numbers are those of tc_cast_options in c_api.h.
enum class RoundMode : std::int32_t { up = 0, down = 1, nearest = 2 };                      // float8_e8m0fnu only
enum class OutOfRange : std::int32_t { automatic = 0, wrap = 1, saturate = 2, error = 3 };  // D6 of docs/semantics.md
// D16. `automatic`: integers toward zero, floating-point numbers to nearest even, float8_e8m0fnu as RoundMode says.
enum class Rounding : std::int32_t {
  automatic = 0,
  nearest_even = 1,
  nearest_away = 2,
  toward_zero = 3,
  toward_positive = 4,
  toward_negative = 5,
  to_odd = 6,
  stochastic = 7
};
// NaN and Inf to integer, NaN to float4 and float6, negative to types without sign.
enum class Invalid : std::int32_t { default_value = 0, error = 1 };
enum class FnuzInf : std::int32_t { spec = 0, flt_max = 1 };  // opset 19 to 23, saturate on
enum class FloatString : std::int32_t { plain = 0, shortest = 1, g8 = 2 };
// A number whose value would change: by any rounding, saturation or wrap. NaN equals NaN, and -0 equals 0.
enum class Inexact : std::int32_t { automatic = 0, error = 1 };

// What a conversion means. How it runs is in Execution.
struct CastOptions {
  int opset = 0;  // 0: newest_opset()
  bool saturate = true;
  RoundMode round_mode = RoundMode::up;
  OutOfRange out_of_range = OutOfRange::automatic;
  Rounding rounding = Rounding::automatic;  // of every target
  Invalid invalid = Invalid::default_value;
  FnuzInf fnuz_inf = FnuzInf::spec;
  FloatString float_string = FloatString::plain;
  double scale = 1.0;      // finite; values are multiplied by it before the one rounding
  std::uint64_t seed = 0;  // of stochastic rounding, and of no other
  Inexact inexact = Inexact::automatic;

  // The defaults, which are ONNX's: integers wrap.
  [[nodiscard]] static CastOptions onnx() noexcept { return {}; }
  // No integer is lost: out_of_range and invalid are errors. So are numbers out of the target's range, of a float too,
  // NaN and infinity to an integer, infinity to a type that lacks it, NaN to float4 and float6, zeros and negative
  // numbers to float8_e8m0fnu. Fractions are still truncated.
  [[nodiscard]] static CastOptions lossless_integers() noexcept {
    CastOptions options;
    options.out_of_range = OutOfRange::error;
    options.invalid = Invalid::error;
    return options;
  }
  // Finite numbers out of the target's range become its lowest or largest; fractions round to nearest, ties to even.
  [[nodiscard]] static CastOptions saturating_integers() noexcept {
    CastOptions options;
    options.out_of_range = OutOfRange::saturate;
    options.rounding = Rounding::nearest_even;
    return options;
  }

  friend bool operator==(const CastOptions&, const CastOptions&) = default;
};

// The effects of a conversion on its numbers. Errors are measured against source * scale in real arithmetic.
struct CastReport {
  std::uint64_t count = 0;       // elements converted
  std::uint64_t overflowed = 0;  // finite, out of the target's range, became infinite or NaN
  std::uint64_t saturated = 0;   // out of the target's range (infinities included), became its lowest or largest
  // Finite and nonzero, became zero: rounded, truncated, saturated or wrapped.
  std::uint64_t underflowed_to_zero = 0;
  std::uint64_t inexact = 0;    // finite in and out, value changed
  std::uint64_t nan_made = 0;   // was not NaN, became NaN
  std::uint64_t nan_lost = 0;   // was NaN, became a number
  std::uint64_t wrapped = 0;    // out of the target integer's range, kept the low bits
  std::uint64_t sign_lost = 0;  // below zero, became its magnitude in a type without sign
  double max_abs_error = 0.0;   // over elements finite in and out
  double max_rel_error = 0.0;   // same, over nonzero sources
  double signal_power = 0.0;    // sum of squares of the sources, over elements finite in and out
  double noise_power = 0.0;     // sum of squares of the errors, same elements; both sums have nine good digits

  // Signal to noise ratio in decibels: 10 log10(signal_power / noise_power); +infinity without noise.
  [[nodiscard]] TENSORCAST_API double snr_db() const noexcept;
  // Adds `other`: the result is the report of both inputs together.
  TENSORCAST_API void merge(const CastReport& other) noexcept;

  friend bool operator==(const CastReport&, const CastReport&) = default;
};

// Converts every element of `src` to `dst.dtype` with a single rounding.
//
// Sizes    shapes must be equal; each `bytes` must hold exactly storage_bytes(dtype, count).
// Overlap  `src` and `dst` are disjoint, or start at the same address with dst not wider than src.
// Loss     as `options` say; tail bits of sub-byte targets are written as zero.
// Errors   invalid_argument, unsupported (type or attribute newer than options.opset),
//          out_of_range (only when options demand it; names the element; dst is then unspecified).
// Cost     O(count), no allocation when execution.threads == 1; threads only for large tensors.
[[nodiscard]] TENSORCAST_API Result<void> cast(const TensorView& src, const MutableTensorView& dst,
                                               const CastOptions& options = {}, const Execution& execution = {});

// Converts as cast() above and adds what happened to the numbers to `report`, unless there is an error.
// Cost: each piece is compared with its source while it is in the cache; allocates.
[[nodiscard]] TENSORCAST_API Result<void> cast(const TensorView& src, const MutableTensorView& dst,
                                               const CastOptions& options, CastReport& report,
                                               const Execution& execution = {});

// Strings in the layout of StringView, owned.
struct StringBuffer {
  std::vector<char> data = {};
  std::vector<std::int64_t> offsets = {};  // count + 1

  [[nodiscard]] StringView view() const& noexcept TENSORCAST_LIFETIMEBOUND {
    return {{data.data(), data.size()}, {offsets.data(), offsets.size()}};
  }
  StringView view() const&& = delete;  // of a temporary
};

// Reads every string as a number (D8 of docs/semantics.md) and rounds it once to `dst.dtype`.
//
// Sizes    dst.shape has as many elements as `src` has strings; dst.bytes as in cast(). `src` and `dst` are disjoint.
// Errors   parse (names the element that is not a number); otherwise as cast(). After an error `dst` is unspecified.
// Cost     O(bytes of text), one thread.
[[nodiscard]] TENSORCAST_API Result<void> cast_from_strings(const StringView& src, const MutableTensorView& dst,
                                                            const CastOptions& options = {});

// Prints every number as options.float_string says (D9 of docs/semantics.md).
// Errors: invalid_argument (also if options.scale is not 1), unsupported. Cost: O(count), one thread; allocates the
// result.
[[nodiscard]] TENSORCAST_API Result<StringBuffer> cast_to_strings(const TensorView& src,
                                                                  const CastOptions& options = {});

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
