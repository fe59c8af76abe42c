// SPDX-License-Identifier: Apache-2.0
#include "quantized/choose/scheme_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "block/encode/quantizer.hpp"
#include "cast/parallel.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"
#include "quantized/rewrite/loss_meter.hpp"
#include "quantized/rewrite/quantizing.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::file_conversion {
namespace {

constexpr std::uint64_t band_elements = std::uint64_t{1} << 18;
constexpr std::uint64_t window_bands = 8;
constexpr std::uint64_t exponent_count = 256;

enum class Limit : std::uint8_t { none, lowest, highest };

Limit limit_of(DType type, const std::byte* scale) {
  const unsigned code = std::to_integer<unsigned>(*scale);
  if (type == DType::float8_e8m0fnu) return code == 0 ? Limit::lowest : code >= 254 ? Limit::highest : Limit::none;
  if (type == DType::float8_e4m3fn) return code <= 1 ? Limit::lowest : code >= 0x7e ? Limit::highest : Limit::none;
  float number = 0.0f;
  std::copy_n(scale, sizeof number, reinterpret_cast<std::byte*>(&number));
  if (!std::isfinite(number)) return Limit::highest;
  return number < std::numeric_limits<float>::min() ? Limit::lowest : Limit::none;
}

class Candidate {
 public:
  Candidate(SchemeFit& fit, FittedScheme scheme, DType weights)
      : fit_(&fit), layout_(*std::move(scheme.layout)), weights_(weights) {
    fit.recipe = layout_->tensor.recipe->recipe;
  }

  [[nodiscard]] std::uint64_t band_rows() const noexcept { return layout_->band_rows; }

  void begin(float largest, std::uint64_t count) {
    quantizer_.emplace(layout_, largest);
    std::uint64_t bytes = layout_->rows * layout_->codes_row_bytes;
    if (layout_->tensor.scales_dtype != DType::undefined) {
      fit_->scales = layout_->scale_count(0, layout_->rows);
      bytes += storage_bytes(stored_scales(), fit_->scales);
      if (layout_->has_zero_points()) bytes += storage_bytes(DType::int4, fit_->scales);
    }
    if (quantizer_->global_scale()) bytes += sizeof(float);
    fit_->bits = count == 0 ? 0.0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(count);
  }

  // What is counted of rows [first, first + shape's rows) of the tensor: the sums, and the problem.
  [[nodiscard]] SchemeFit measure(std::uint64_t first, const Shape& shape, const std::byte* numbers,
                                  std::span<const float> floats) const {
    SchemeFit counts;
    const auto columns = static_cast<std::uint64_t>(shape.back());
    const std::uint64_t rows = floats.size() / columns;
    QuantizedTensor made;
    const Result<void> done = quantizer_->run(first, rows, numbers, made, {.threads = 1});
    if (!done) return {.problem = done.error().message};
    made.shape = shape;
    const Result<quantized::RecoveredRows> recovered = quantized::recover(made.tensor(), 0, shape, floats);
    if (!recovered) return {.problem = recovered.error().message};
    counts.saturated = recovered->saturated;
    for (std::uint64_t row = 0; row < rows; ++row) {
      compare(floats.subspan(row * columns, columns), std::span(recovered->numbers).subspan(row * columns, columns),
              layout_->importance_of(first + row, 0), counts);
    }
    count_scales(made, columns, floats, counts);
    return counts;
  }

  // Bands are added in their order, so that sums do not depend on threads.
  void add(const SchemeFit& counts) const {
    fit_->signal_power += counts.signal_power;
    fit_->noise_power += counts.noise_power;
    fit_->max_abs_error = std::max(fit_->max_abs_error, counts.max_abs_error);
    fit_->became_zero += counts.became_zero;
    fit_->saturated += counts.saturated;
    fit_->lowest_scales += counts.lowest_scales;
    fit_->highest_scales += counts.highest_scales;
    if (fit_->problem.empty()) fit_->problem = counts.problem;
  }

 private:
  // The type of scales in the files of the recipe's own spelling.
  [[nodiscard]] DType stored_scales() const {
    const DType narrow = quantized::exact_scales_of(layout_->tensor, weights_);
    const bool keeps = narrow != DType::undefined && layout_->tensor.recipe->spelling == "compressed-tensors";
    return keeps ? narrow : layout_->tensor.scales_dtype;
  }

  // `importance`: null: all 1.
  static void compare(std::span<const float> floats, std::span<const float> decoded, const float* importance,
                      SchemeFit& counts) {
    // Four sums, so that one addition need not wait for the other.
    std::array<double, 4> signal{}, noise{};
    std::uint64_t nonfinite = 0;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const double number = floats[i], error = number - static_cast<double>(decoded[i]);
      const double weight = importance == nullptr ? 1.0 : importance[i];
      signal[i % 4] += weight * (number * number);
      noise[i % 4] += weight * (error * error);
      counts.max_abs_error = std::max(counts.max_abs_error, std::fabs(error));
      counts.became_zero += decoded[i] == 0.0f && floats[i] != 0.0f ? 1 : 0;
      nonfinite += std::isfinite(decoded[i]) ? 0 : 1;
    }
    counts.signal_power += (signal[0] + signal[1]) + (signal[2] + signal[3]);
    counts.noise_power += (noise[0] + noise[1]) + (noise[2] + noise[3]);
    if (nonfinite != 0) counts.problem = "the recipe makes NaN or infinity of numbers";
  }

  void count_scales(const QuantizedTensor& made, std::uint64_t columns, std::span<const float> floats,
                    SchemeFit& counts) const {
    if (made.scales_dtype == DType::undefined || layout_->is_per_tensor()) return;
    const std::size_t item = storage_bytes(made.scales_dtype, 1);
    const auto width = made.block_columns == 0 ? columns : static_cast<std::uint64_t>(made.block_columns);
    const std::uint64_t grid = ceil_div(columns, width);
    for (std::uint64_t i = 0; i < made.scales.size() / item; ++i) {
      const Limit limit = limit_of(made.scales_dtype, made.scales.data() + i * item);
      if (limit == Limit::none) continue;
      if (limit == Limit::highest) {
        ++counts.highest_scales;
      } else if (band_rows() != 1 || !is_zero_block(floats, i / grid, i % grid * width, width, columns)) {
        ++counts.lowest_scales;
      }
    }
  }

  static bool is_zero_block(std::span<const float> floats, std::uint64_t row, std::uint64_t column, std::uint64_t width,
                            std::uint64_t columns) {
    const auto block = floats.subspan(row * columns + column, std::min(width, columns - column));
    return std::ranges::all_of(block, [](float number) { return number == 0.0f; });
  }

  SchemeFit* fit_;
  block::SharedLayout layout_;
  std::optional<block::Quantizer> quantizer_;  // after begin()
  DType weights_;
};

class Measurement {
 public:
  Measurement(formats::Reader& reader, std::size_t index, const Execution& execution, TensorStats& stats)
      : reader_(reader), info_(reader.tensors()[index]), index_(index), execution_(execution), stats_(stats) {}

  // Adds a candidate, unless there is none.
  void add(SchemeFit& fit, FittedScheme scheme) {
    if (stats_.nan + stats_.infinite != 0) {
      fit.problem = "the weight has NaN or infinity";
    } else if (!scheme.layout) {
      fit.problem = scheme.layout.error().message;
    } else {
      candidates_.emplace_back(fit, std::move(scheme), info_.dtype);
    }
  }

  Result<void> run() {
    stats_.exponents.assign(exponent_count, 0);
    if (info_.count == 0) return {};
    const float largest = static_cast<float>(std::max(std::fabs(stats_.min), std::fabs(stats_.max)));
    for (Candidate& candidate : candidates_) candidate.begin(largest, info_.count);
    choose_bands();
    for (std::uint64_t row = 0; row < rows_;) {
      // A window has whole matrices, or rows of one.
      std::uint64_t end = std::min(row + window_bands * band_rows_, rows_);
      if (!spans_matrices_) end = std::min(end, (row / matrix_rows_ + 1) * matrix_rows_);
      TRY(run_window(row, end - row));
      row = end;
    }
    return {};
  }

 private:
  void choose_bands() {
    const std::size_t rank = info_.shape.size();
    columns_ = rank == 0 ? 1 : static_cast<std::uint64_t>(info_.shape.back());
    matrix_rows_ = rank < 2 ? 1 : static_cast<std::uint64_t>(info_.shape[rank - 2]);
    rows_ = info_.count / columns_;
    std::uint64_t unit = 1;
    for (const Candidate& candidate : candidates_) unit = std::max(unit, candidate.band_rows());
    const std::uint64_t rows = std::max<std::uint64_t>(band_elements / columns_, 1);
    // Blocks of rows begin anew in each matrix: a band has whole matrices, or whole blocks of one.
    spans_matrices_ = unit == 1 || matrix_rows_ <= rows;
    if (unit == 1) {
      band_rows_ = rows;
    } else {
      band_rows_ = spans_matrices_ ? rows / matrix_rows_ * matrix_rows_ : ceil_div(rows, unit) * unit;
    }
    in_matrices_ = unit != 1 && spans_matrices_;
  }

  [[nodiscard]] Shape band_shape(std::uint64_t rows) const {
    const auto columns = static_cast<std::int64_t>(columns_);
    if (!in_matrices_) return Shape(std::vector<std::int64_t>{static_cast<std::int64_t>(rows), columns});
    return Shape(std::vector<std::int64_t>{static_cast<std::int64_t>(rows / matrix_rows_),
                                           static_cast<std::int64_t>(matrix_rows_), columns});
  }

  Result<void> run_window(std::uint64_t first, std::uint64_t rows) {
    const std::uint64_t count = rows * columns_;
    const std::uint64_t row_bytes = storage_bytes(info_.dtype, columns_);
    source_.resize(rows * row_bytes);
    floats_.resize(count);
    TRY(reader_.read(index_, first * row_bytes, source_));
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    TRY(cast({info_.dtype, shape, source_}, {DType::float32, shape, std::as_writable_bytes(std::span(floats_))}, {},
             execution_));
    for (const float number : floats_) ++stats_.exponents[std::bit_cast<std::uint32_t>(number) >> 23 & 0xff];
    const std::uint64_t bands = ceil_div(rows, band_rows_);
    std::vector<SchemeFit> counts(bands * candidates_.size());
    run_tasks(counts.size(), execution_, [&](std::size_t task) {
      const std::uint64_t band = task / candidates_.size(), begin = band * band_rows_;
      const std::uint64_t size = std::min(band_rows_, rows - begin);
      const auto floats = std::span(floats_).subspan(begin * columns_, size * columns_);
      counts[task] = candidates_[task % candidates_.size()].measure(first + begin, band_shape(size),
                                                                    source_.data() + begin * row_bytes, floats);
    });
    for (std::size_t task = 0; task < counts.size(); ++task) candidates_[task % candidates_.size()].add(counts[task]);
    return {};
  }

  formats::Reader& reader_;
  const formats::TensorInfo& info_;
  std::size_t index_;
  const Execution& execution_;
  TensorStats& stats_;
  std::vector<Candidate> candidates_;
  std::uint64_t rows_ = 0, columns_ = 1, matrix_rows_ = 1, band_rows_ = 1;
  bool spans_matrices_ = true;  // bands may
  bool in_matrices_ = false;    // bands are whole matrices
  std::vector<std::byte> source_;
  std::vector<float> floats_;
};

}  // namespace

Result<void> fit_schemes(formats::Reader& reader, std::size_t index, std::span<const SchemeCandidate> schemes,
                         std::span<const float> importance, const Execution& execution, TensorStats& stats) {
  const formats::TensorInfo& info = reader.tensors()[index];
  if (family(info.dtype) != Family::floating || bit_width(info.dtype) < 8) return {};
  std::vector<FittedScheme> fitted;
  for (const SchemeCandidate& scheme : schemes) {
    QuantizeOptions options{.recipe = scheme.recipe, .nonfinite = NonFiniteWeights::tool, .importance = importance};
    if (!quantized::is_plain_float(info.dtype)) options.compute_dtype = DType::float32;
    Result<block::SharedLayout> made = block::WeightLayout::make(info.dtype, Shape(info.shape), scheme.scheme, options);
    if (!made && find_quantize_recipe(scheme.scheme, scheme.recipe) == nullptr) return std::move(made).error();
    fitted.push_back({.candidate = scheme, .layout = std::move(made)});
  }
  return fit_layouts(reader, index, std::move(fitted), execution, stats);
}

Result<void> fit_layouts(formats::Reader& reader, std::size_t index, std::vector<FittedScheme> schemes,
                         const Execution& execution, TensorStats& stats) {
  Measurement measurement(reader, index, execution, stats);
  stats.schemes.reserve(schemes.size());
  for (FittedScheme& each : schemes) {
    SchemeFit& fit = stats.schemes.emplace_back();
    fit.scheme = each.candidate.scheme;
    fit.recipe = each.candidate.recipe;
    measurement.add(fit, std::move(each));
  }
  return measurement.run();
}

}  // namespace tensorcast::file_conversion

namespace tensorcast {
inline namespace TENSORCAST_ABI {

double SchemeFit::snr_db() const noexcept {
  if (noise_power == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal_power / noise_power);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
