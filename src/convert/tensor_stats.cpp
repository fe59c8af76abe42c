// One tensor of a file, summed up in blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "convert/guarded.hpp"
#include "convert/open_input.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
namespace {

// One block in every type that is looked at stays below a megabyte; a multiple of 64, so that it begins at whole bytes.
constexpr std::uint64_t stats_block_elements = std::uint64_t{1} << 16;

Result<std::size_t> find_tensor(const formats::Reader& reader, const std::string& name) {
  const std::vector<formats::TensorInfo>& tensors = reader.tensors();
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  if (found != tensors.end()) return static_cast<std::size_t>(found - tensors.begin());
  if (name.empty() && tensors.size() == 1) return std::size_t{0};
  return Error{.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no tensor \"{}\"", name),
               .hint = "`tcast inspect` lists the names"};
}

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

Result<TensorStats> sum_up(formats::Reader& reader, std::size_t index, std::span<const DType> candidates,
                           const CastOptions& options) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const formats::TensorInfo& tensor = reader.tensors()[index];
  if (bit_width(tensor.dtype) == 0) {
    return Error{.code = ErrorCode::unsupported, .message = "there are no statistics of texts and foreign types"};
  }
  TensorStats stats{.min = infinity, .max = -infinity, .smallest_nonzero_magnitude = infinity, .candidates = {}};
  for (const DType candidate : candidates) stats.candidates.emplace_back(candidate, CastReport{});

  std::vector<std::byte> source(storage_bytes(tensor.dtype, stats_block_elements));
  std::vector<double> values(stats_block_elements);
  std::vector<std::byte> target(storage_bytes(DType::float64, stats_block_elements));
  for (std::uint64_t first = 0; first < tensor.count; first += stats_block_elements) {
    const std::size_t count = std::min(stats_block_elements, tensor.count - first);
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    const std::span<std::byte> bytes = std::span(source).first(storage_bytes(tensor.dtype, count));
    if (auto got = reader.read(index, storage_bytes(tensor.dtype, first), bytes); !got) return std::move(got).error();
    const TensorView block{tensor.dtype, shape, bytes};
    const std::span<double> block_values = std::span(values).first(count);
    if (auto done = cast(block, {DType::float64, shape, std::as_writable_bytes(block_values)}); !done) {
      return std::move(done).error();
    }
    add_values(block_values, stats);
    for (auto& [candidate, report] : stats.candidates) {
      const MutableTensorView converted{candidate, shape, std::span(target).first(storage_bytes(candidate, count))};
      Result<void> done = cast(block, converted, options, report);
      if (!done) {
        if (done.error().element) *done.error().element += first;
        return std::move(done).error();
      }
    }
  }
  // Without any finite element, or any but zero, there is nothing to tell.
  if (stats.min > stats.max) stats.min = stats.max = 0.0;
  if (stats.smallest_nonzero_magnitude == infinity) stats.smallest_nonzero_magnitude = 0.0;
  return stats;
}

}  // namespace

Result<TensorStats> tensor_stats(const std::string& path, const std::string& tensor, std::span<const DType> candidates,
                                 const CastOptions& options, const std::optional<RawLayout>& raw,
                                 const SourceTypes& from) {
  return convert::guarded([&]() -> Result<TensorStats> {
    const Result<convert::OpenedInput> input = convert::open_input(path, "", {.raw = raw, .from = from});
    if (!input) return input.error();
    Result<std::size_t> index = find_tensor(*input->reader, tensor);
    Result<TensorStats> stats = index ? sum_up(*input->reader, *index, candidates, options) : std::move(index).error();
    if (!stats) {
      if (stats.error().file.empty()) stats.error().file = path;
      if (index) stats.error().tensor = tensor;
    }
    return stats;
  });
}

}  // namespace tensorcast
