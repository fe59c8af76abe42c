// SPDX-License-Identifier: Apache-2.0
// Computes statistics of one tensor of a file, block by block.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cast/conversion.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "quantized/choose/scheme_fit.hpp"
#include "quantized/layout/open_input.hpp"
#include "quantized/rewrite/importance.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// A block of any type stays below a megabyte; a multiple of 64, so that it begins at a whole byte.
constexpr std::uint64_t stats_block_elements = std::uint64_t{1} << 16;

void add_values(std::span<const double> values, TensorStats& stats) {
  for (const double value : values) {
    stats.nan += std::isnan(value) ? 1 : 0;
    stats.infinite += std::isinf(value) ? 1 : 0;
    stats.zero += value == 0.0 ? 1 : 0;
    stats.negative += value < 0.0 ? 1 : 0;
    if (!std::isfinite(value)) continue;
    stats.min = std::min(stats.min, value);
    stats.max = std::max(stats.max, value);
    if (value != 0.0) stats.smallest_nonzero_magnitude = std::min(stats.smallest_nonzero_magnitude, std::fabs(value));
  }
  stats.count += values.size();
}

// `file`: of importance; null: none.
Result<TensorStats> sum_up(formats::Reader& reader, std::size_t index, const StatsRequest& request,
                           const quantized::ImportanceFile* file) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const formats::TensorInfo& tensor = reader.tensors()[index];
  if (bit_width(tensor.dtype) == 0) return unsupported("there are no statistics of texts and foreign types");
  TensorStats stats{.min = infinity, .max = -infinity, .smallest_nonzero_magnitude = infinity};
  for (const DType candidate : request.candidates) stats.candidates.emplace_back(candidate, CastReport{});

  std::vector<std::byte> source(storage_bytes(tensor.dtype, stats_block_elements));
  std::vector<double> values(stats_block_elements);
  std::vector<std::byte> target(storage_bytes(DType::float64, stats_block_elements));
  for (std::uint64_t first = 0; first < tensor.count; first += stats_block_elements) {
    const std::size_t count = std::min(stats_block_elements, tensor.count - first);
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    const std::span<std::byte> bytes = std::span(source).first(storage_bytes(tensor.dtype, count));
    TRY(reader.read(index, storage_bytes(tensor.dtype, first), bytes));
    const TensorView block{tensor.dtype, shape, bytes};
    const std::span<double> block_values = std::span(values).first(count);
    TRY(cast(block, {DType::float64, shape, std::as_writable_bytes(block_values)}, {}, request.execution));
    add_values(block_values, stats);
    for (auto& [candidate, report] : stats.candidates) {
      const MutableTensorView converted{candidate, shape, std::span(target).first(storage_bytes(candidate, count))};
      TRY(counted_from(first, cast(block, converted, request.options, report, request.execution)));
    }
  }
  // Without finite elements other than zero, the range is 0 to 0.
  if (stats.min > stats.max) stats.min = stats.max = 0.0;
  if (stats.smallest_nonzero_magnitude == infinity) stats.smallest_nonzero_magnitude = 0.0;
  if (request.schemes.empty()) return stats;
  std::vector<float> importance;
  if (file != nullptr) importance = TRY(file->read(file->find(tensor.name)));
  TRY(file_conversion::fit_schemes(reader, index, request.schemes, importance, request.execution, stats));
  return stats;
}

Error no_such_tensor(const std::string& name) {
  return invalid(fmt::format("there is no tensor \"{}\"", name), "`tcast inspect` lists the names");
}

// Maps names to indices of tensors; the first of equal names.
std::unordered_map<std::string_view, std::size_t> places_of(const std::vector<formats::TensorInfo>& tensors) {
  std::unordered_map<std::string_view, std::size_t> places;
  places.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  return places;
}

Result<std::vector<TensorStats>> sum_up_all(formats::Reader& reader, const StatsRequest& request) {
  std::optional<quantized::ImportanceFile> importance;
  if (!request.importance.empty() && !request.schemes.empty()) {
    importance = TRY(quantized::ImportanceFile::open(request.importance));
  }
  const std::unordered_map<std::string_view, std::size_t> places = places_of(reader.tensors());
  std::vector<TensorStats> all;
  all.reserve(request.tensors.size());
  for (const std::string& name : request.tensors) {
    const auto found = places.find(name);
    const bool is_the_only_one = name.empty() && reader.tensors().size() == 1;
    if (found == places.end() && !is_the_only_one) return no_such_tensor(name);
    const std::size_t place = is_the_only_one ? 0 : found->second;
    all.push_back(TRY(of_tensor(name, sum_up(reader, place, request, importance ? &*importance : nullptr))));
  }
  return all;
}

}  // namespace
}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::file_conversion {

Result<TensorStats> count_numbers(formats::Reader& reader, std::size_t index, const Execution& execution) {
  StatsRequest request;
  request.execution = execution;
  return sum_up(reader, index, request, nullptr);
}

}  // namespace tensorcast::file_conversion

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<std::vector<TensorStats>> tensor_stats(const StatsRequest& request) {
  return guarded(request.input, [&]() -> Result<std::vector<TensorStats>> {
    TRY(check_execution(request.execution));
    const file_conversion::OpenedInput input = TRY(
        file_conversion::open_input(request.input, request.input_format, {.raw = request.raw, .from = request.from}));
    return in_file(request.input, sum_up_all(*input.reader, request));
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
