// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/loss_meter.hpp"

#include <algorithm>
#include <cmath>

#include "block/format/code_packing.hpp"
#include "cast/parallel.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t part_elements = std::uint64_t{1} << 16;  // numbers and decoded ones fit the second-level cache

// Counts the elements of whole rows that became the largest or lowest code and are larger than it means. `codes`: as
// QuantizedTensor::codes. Not of GGUF.
std::uint64_t count_saturated(const BlockCoding& coding, std::span<const std::byte> codes, std::size_t columns,
                              std::span<const float> numbers, std::span<const float> decoded) {
  // The codes of the largest and of the lowest number, as they are stored: uint8 has half of the range added.
  const unsigned sign = 1u << (coding.bits - 1);
  unsigned highest = coding.element == DType::uint8 ? 2 * sign - 1 : sign - 1;
  unsigned lowest = coding.element == DType::uint8 ? 0 : sign;
  if (!is_integer(coding.element)) {
    highest = static_cast<unsigned>(row(coding.element).format.largest_code());
    lowest = highest | sign;
  }
  const std::size_t rows = numbers.size() / columns, row_bytes = codes.size() / rows;
  std::vector<std::uint8_t> row_codes(columns);
  std::uint64_t saturated = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    block::unpack_stream(coding.bits, codes.data() + i * row_bytes, row_codes);
    const float* const x = numbers.data() + i * columns;
    const float* const y = decoded.data() + i * columns;
    std::uint32_t count = 0;  // without branches, which vectors need
    for (std::size_t j = 0; j < columns; ++j) {
      const unsigned at_end =
          static_cast<unsigned>(row_codes[j] == highest) | static_cast<unsigned>(row_codes[j] == lowest);
      count += at_end & static_cast<unsigned>(std::fabs(x[j]) > std::fabs(y[j]));
    }
    saturated += count;
  }
  return saturated;
}

}  // namespace

Result<RecoveredRows> recover(const BlockTensor& made, std::uint64_t first, const Shape& shape,
                              std::span<const float> numbers) {
  RecoveredRows rows{.numbers = std::vector<float>(numbers.size())};
  const MutableTensorView out{DType::float32, shape, std::as_writable_bytes(std::span(rows.numbers))};
  TRY(dequantize(made, static_cast<std::int64_t>(first), out, {}, nullptr, {.threads = 1}));
  if (made.coding.gguf != tensorcast::GgufBlock::none || numbers.empty()) return rows;
  const std::span<const std::byte> codes = made.codes.bytes;
  const auto columns = static_cast<std::size_t>(made.shape.back());
  const auto all_rows = TRY(element_count(made.shape)) / columns;
  const std::size_t row_bytes = codes.size() / all_rows, count = numbers.size() / columns;
  rows.saturated =
      count_saturated(made.coding, codes.subspan(first * row_bytes, count * row_bytes), columns, numbers, rows.numbers);
  return rows;
}

Result<void> LossMeter::add(std::uint64_t first, std::uint64_t rows, std::span<const std::byte> source,
                            const BlockTensor& made, const Execution& execution) {
  if (first != next_row_) return {};
  next_row_ += rows;
  const auto columns = static_cast<std::uint64_t>(made.shape.back());
  if (columns == 0) return {};
  const std::uint64_t row_bytes = storage_bytes(numbers_, columns);
  const std::uint64_t part_rows = std::max<std::uint64_t>(part_elements / columns, 1);
  const std::uint64_t count = (rows + part_rows - 1) / part_rows;
  std::vector<Part> parts(count);
  TRY(try_tasks(count, execution, [&](std::size_t task) {
    const std::uint64_t begin = task * part_rows, size = std::min(part_rows, rows - begin);
    return measure(begin, source.subspan(begin * row_bytes, size * row_bytes), made, parts[task]);
  }));
  for (const Part& part : parts) {
    sum_.accumulator.merge(part.accumulator);
    sum_.saturated += part.saturated;
    sum_.nonzero += part.nonzero;
    sum_.is_finite = sum_.is_finite && part.is_finite;
  }
  return {};
}

Result<void> LossMeter::measure(std::uint64_t first, std::span<const std::byte> source, const BlockTensor& made,
                                Part& part) const {
  const auto columns = static_cast<std::size_t>(made.shape.back());
  const std::size_t count = source.size() / storage_bytes(numbers_, 1), rows = count / columns;
  const Shape shape{static_cast<std::int64_t>(rows), made.shape.back()};
  std::vector<float> numbers(count);
  const auto bytes_of = [](std::vector<float>& floats) { return std::as_writable_bytes(std::span(floats)); };
  TRY(cast({numbers_, shape, source}, {DType::float32, shape, bytes_of(numbers)}, {}, {.threads = 1}));
  RecoveredRows recovered = TRY(recover(made, first, shape, numbers));
  reporter_.add({bytes_of(numbers).data(), bytes_of(recovered.numbers).data(), count}, part.accumulator);
  part.is_finite = std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
  part.nonzero = file_conversion::count_nonzero(numbers_, source, count);
  part.saturated = recovered.saturated;
  return {};
}

QuantizedLoss LossMeter::loss() const {
  QuantizedLoss loss{.report = reporter_.report(sum_.accumulator), .nonzero = {}, .was_finite = sum_.is_finite};
  loss.report.saturated += sum_.saturated;
  loss.nonzero = {.before = sum_.nonzero,
                  .after = sum_.nonzero - std::min(sum_.nonzero, loss.report.underflowed_to_zero)};
  return loss;
}

}  // namespace tensorcast::quantized
