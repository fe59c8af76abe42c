// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "block/code_packing.hpp"
#include "block/quantizer.hpp"
#include "cast/conversion.hpp"
#include "cast/pages.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

Result<QuantizedTensor> make(const TensorView& weight, std::string_view scheme, GgufBlock gguf,
                             const QuantizeOptions& options, const Execution& execution) {
  Result<block::Quantizer> quantizer = block::Quantizer::make(weight.dtype, weight.shape, scheme, options, gguf);
  if (!quantizer) return std::move(quantizer).error();
  const Result<std::size_t> count = element_count(weight.shape);
  if (!count) return count.error();
  if (Result<void> size = check_size("source", weight.dtype, *count, weight.bytes.size()); !size) {
    return std::move(size).error();
  }
  if (Result<void> threads = check_execution(execution); !threads) return std::move(threads).error();
  if (options.maximum && !(*options.maximum >= 0.0f && std::isfinite(*options.maximum))) {
    return invalid(formatted("`maximum` is {}, which is no magnitude", *options.maximum));
  }
  if (quantizer->needs_maximum()) {
    const Result<float> largest =
        options.maximum ? Result<float>(*options.maximum) : quantizer->maximum(weight.bytes.data(), *count, execution);
    if (!largest) return largest.error();
    quantizer->set_maximum(*largest);
  }
  QuantizedTensor made = quantizer->layout();
  made.codes = ResultVector<std::byte>(quantizer->rows() * quantizer->codes_row_bytes(), execution.memory);
  constexpr bool may_advise = true;
  (void)pages_of(made.codes.data(), made.codes.size(), may_advise);  // asks for huge ones if they are new
  std::size_t scales = 0;
  if (made.scales_dtype != DType::undefined) {
    const Result<std::size_t> blocks = element_count(made.scales_shape);
    if (!blocks) return blocks.error();
    scales = *blocks;
    made.scales.resize(storage_bytes(made.scales_dtype, scales));
  }
  if (!options.symmetric) made.zero_points.resize(scales);
  const block::QuantizedRows out{made.codes.data(), made.scales.data(),
                                 options.symmetric ? nullptr : made.zero_points.data(),
                                 quantizer->results_bypass_cache()};
  const Result<bool> has_nonzero = quantizer->run(0, quantizer->rows(), weight.bytes.data(), out, execution);
  if (!has_nonzero) return has_nonzero.error();
  if (made.block_rows == 0 && scales == 1) quantizer->put_tensor_scale(made.scales);
  const bool is_zero = quantizer->needs_maximum() ? quantizer->maximum_is_zero() : !*has_nonzero;
  if (is_zero && quantizer->has_unit_scales_of_zeros()) quantizer->set_unit_scales(made.scales);
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
    if (tensor.coding.gguf != GgufBlock::none) {
      return Error{.code = ErrorCode::invalid_argument, .message = "blocks of GGUF have no codes of their own"};
    }
    const Result<std::size_t> count = element_count(tensor.shape);
    if (!count) return count.error();
    std::vector<std::byte> codes(*count);
    const std::size_t columns = tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape.back());
    if (columns == 0) return codes;
    const std::size_t rows = *count / columns;
    const std::size_t row_bytes = rows == 0 ? 0 : tensor.codes.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t*>(codes.data() + row * columns), columns);
      block::unpack_stream(tensor.coding.bits, tensor.codes.data() + row * row_bytes, out);
    }
    if (tensor.coding.element == DType::uint8) {  // stored with an offset of 8
      for (std::byte& code : codes) code ^= std::byte{8};
    }
    return codes;
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
