// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/scale_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "block/format/scale_tiles.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t most_checked_bytes = std::uint64_t{1} << 20;
constexpr int bias = 127;
constexpr int widest_span = most_e4m3_exponent - least_e4m3_exponent;
constexpr int least_global_exponent = -127;  // the reciprocal of a smaller one is infinite

Result<std::unique_ptr<RespelledCodes>> open(const ScaleSource& source) {
  return RespelledCodes::create(PartReader(source.reader, source.layer), source.content, {});
}

// Calls take(first_row, scales) for all scales, some rows at a time; until it returns an error.
template <class Take>
Result<void> each_rows(const ScaleSource& source, RespelledCodes& codes, const Take& take) {
  const std::uint64_t columns = source.content.grid_columns(), rows = source.content.grid_rows();
  if (columns == 0) return {};
  const std::uint64_t most =
      std::max<std::uint64_t>(most_checked_bytes / columns / block::tile_rows * block::tile_rows, block::tile_rows);
  std::vector<std::byte> scales;
  for (std::uint64_t row = 0; row < rows; row += most) {
    scales.resize(std::min(most, rows - row) * columns);
    TRY(codes.scales(row, scales));
    TRY(take(row, std::span<const std::byte>(scales)));
  }
  return {};
}

struct Span {
  int least = 1000, most = -1000;

  void add(int exponent) noexcept {
    least = std::min(least, exponent);
    most = std::max(most, exponent);
  }
  [[nodiscard]] bool fits() const noexcept { return most - least <= widest_span; }
};

Error refused_scale(const ScaleSource& source, std::string message, std::uint64_t element) {
  const std::optional<std::size_t> scales = source.layer.find(PartRole::scales);
  const std::size_t tensor = scales.value_or(source.layer.codes());
  Error error = of_tensor(source.reader.tensors()[tensor].name, unsupported(std::move(message)));
  if (scales && !source.layer.coding.swizzled) error.element = element;
  return error;
}

}  // namespace

Result<int> exponent_for_nvfp4(const ScaleSource& source) {
  const std::unique_ptr<RespelledCodes> codes = TRY(open(source));
  Span all, used;
  TRY(each_rows(source, *codes, [&](std::uint64_t, std::span<const std::byte> scales) {
    for (const std::byte scale : scales) {
      if (scale != e8m0_nan) all.add(std::to_integer<int>(scale) - bias);
    }
    return Result<void>();
  }));
  used = all;
  if (!all.fits()) {
    used = {};
    const std::uint64_t columns = source.content.columns(), grid = source.content.grid_columns();
    const auto block = static_cast<std::uint64_t>(source.content.block_columns);
    std::vector<std::byte> row_codes(columns);
    TRY(each_rows(source, *codes, [&](std::uint64_t first, std::span<const std::byte> scales) -> Result<void> {
      for (std::uint64_t i = 0; i < scales.size(); ++i) {
        if (i % grid == 0) TRY(codes->codes(first + i / grid, row_codes));
        const std::uint64_t begin = i % grid * block, end = std::min(begin + block, columns);
        const bool zero = std::all_of(row_codes.begin() + static_cast<std::ptrdiff_t>(begin),
                                      row_codes.begin() + static_cast<std::ptrdiff_t>(end),
                                      [](std::byte code) { return (code & std::byte{7}) == std::byte{0}; });
        if (!zero && scales[i] != e8m0_nan) used.add(std::to_integer<int>(scales[i]) - bias);
      }
      return {};
    }));
    if (!used.fits()) {
      return refused_scale(
          source,
          fmt::format("scales of blocks that are not zero go from 2^{} to 2^{}, and those of NVFP4 span 2^{}",
                      used.least, used.most, widest_span),
          0);
    }
  }
  if (used.most < used.least) return 0;  // all are NaN or of zeros
  return std::max(used.most - most_e4m3_exponent, least_global_exponent);
}

Result<void> check_for_mxfp4(const ScaleSource& source, std::span<const int> exponents) {
  const std::unique_ptr<RespelledCodes> codes = TRY(open(source));
  const std::uint64_t grid = source.content.grid_columns();
  const std::uint64_t matrix_rows = source.content.grid_rows() / std::max<std::uint64_t>(source.content.matrices(), 1);
  if (grid % 2 != 0)
    return refused_scale(source,
                         "blocks of NVFP4 that become one of MXFP4 come in pairs, and its rows have an odd number", 0);
  return each_rows(source, *codes, [&](std::uint64_t first, std::span<const std::byte> scales) -> Result<void> {
    for (std::uint64_t i = 0; i < scales.size(); i += 2) {
      const std::uint64_t element = first * grid + i;
      if (scales[i] != scales[i + 1]) {
        return refused_scale(source, "two scales of NVFP4 that would be one of MXFP4 differ", element);
      }
      if (scales[i] == e4m3_nan) continue;
      const int power = exponent_of_e4m3(scales[i]);
      if (power == not_a_power)
        return refused_scale(source, "the scale is no power of two, as those of MXFP4 are", element);
      const int exponent = exponents[exponents.size() == 1 ? 0 : (first + i / grid) / matrix_rows];
      if (power + exponent < -bias || power + exponent > bias) {
        return refused_scale(source, fmt::format("the scale 2^{} is out of the range of MXFP4", power + exponent),
                             element);
      }
    }
    return {};
  });
}

Result<void> check_positive(const ScaleSource& source) {
  const std::unique_ptr<RespelledCodes> codes = TRY(open(source));
  const std::uint64_t grid = source.content.grid_columns();
  return each_rows(source, *codes, [&](std::uint64_t first, std::span<const std::byte> scales) -> Result<void> {
    for (std::uint64_t i = 0; i < scales.size(); ++i) {
      const bool nan = (scales[i] & e4m3_nan) == e4m3_nan;
      const bool negative = (scales[i] & std::byte{0x80}) != std::byte{0};
      if (!nan && !negative) continue;
      return refused_scale(source,
                           nan ? "the scale is NaN, which GGUF has not" : "the scale is negative, which GGUF has not",
                           first * grid + i);
    }
    return {};
  });
}

float reciprocal(float scale) noexcept {
  if (scale == 0.0F || std::isinf(scale)) return 0.0F;
  return 1.0F / scale;
}

bool is_exact_reciprocal(float scale, float inverse) noexcept {
  if (scale == 0.0F) return inverse == 0.0F || std::isinf(inverse);
  return std::isnan(scale) || 1.0F / inverse == scale;
}

}  // namespace tensorcast::quantized
