// SPDX-License-Identifier: Apache-2.0
#include "block/encode/quantizer.hpp"
#include "block/format/code_packing.hpp"
#include "cast/conversion.hpp"
#include "cast/pages.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

Result<QuantizedTensor> make(const TensorView& weight, std::string_view scheme, GgufBlock gguf,
                             const QuantizeOptions& options, const Execution& execution) {
  const auto layout = TRY(block::WeightLayout::make(weight.dtype, weight.shape, scheme, options, gguf));
  const std::size_t count = TRY(element_count(weight.shape));
  TRY(check_size("source", weight.dtype, count, weight.bytes.size()));
  TRY(check_execution(execution));
  TRY(block::check_maximum(options));
  const std::byte* const numbers = weight.bytes.data();
  const auto maximum = [&]() -> Result<float> {
    return options.maximum ? block::maximum_of(options) : layout->numbers.maximum(numbers, count, execution);
  };
  const block::Quantizer quantizer = TRY(block::Quantizer::make(layout, {.maximum = maximum}));
  QuantizedTensor made = layout->tensor;
  made.global_scale = quantizer.global_scale();
  made.codes = ResultVector<std::byte>(layout->rows * layout->codes_row_bytes, execution.memory);
  constexpr bool may_advise = true;
  (void)pages_of(made.codes.data(), made.codes.size(), may_advise);  // asks for huge ones if they are new
  block::QuantizedRows out = layout->room_in(made, 0, layout->rows);
  out.bypasses_cache = layout->results_bypass_cache();
  out.are_all = true;
  TRY(quantizer.run(0, layout->rows, numbers, out, execution));
  return made;
}

}  // namespace

Result<QuantizedTensor> quantize(const TensorView& weight, std::string_view scheme, const QuantizeOptions& options,
                                 const Execution& execution) {
  return guarded([&] { return make(weight, scheme, GgufBlock::none, options, execution); });
}

Result<QuantizedTensor> quantize(const TensorView& weight, const BlockFormat& format, const QuantizeOptions& options,
                                 const Execution& execution) {
  return guarded([&] { return make(weight, format.scheme, format.coding.gguf, options, execution); });
}

BlockTensor QuantizedTensor::tensor() const& {
  BlockTensor borrowed{.coding = coding,
                       .shape = shape,
                       .block_rows = block_rows,
                       .block_columns = block_columns,
                       .codes = {codes_dtype, codes_shape, codes}};
  if (scales_dtype != DType::undefined) borrowed.scales = {scales_dtype, scales_shape, scales};
  if (global_scale) {
    borrowed.global_scale = {DType::float32, {}, std::as_bytes(std::span(&*global_scale, 1))};
  }
  if (!zero_points.empty()) {
    borrowed.zero_points = {DType::int8, scales_shape, std::as_bytes(std::span(zero_points))};
  }
  return borrowed;
}

Result<std::vector<std::byte>> element_codes(const QuantizedTensor& tensor) {
  return guarded([&]() -> Result<std::vector<std::byte>> {
    if (tensor.coding.gguf != GgufBlock::none) return invalid("blocks of GGUF have no codes of their own");
    const std::size_t count = TRY(element_count(tensor.shape));
    std::vector<std::byte> codes(count);
    const std::size_t columns = tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape.back());
    if (columns == 0) return codes;
    const std::size_t rows = count / columns;
    const std::size_t row_bytes = rows == 0 ? 0 : tensor.codes.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t*>(codes.data() + row * columns), columns);
      block::unpack_codes(tensor.coding, tensor.codes.data() + row * row_bytes, out);
    }
    return codes;
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
