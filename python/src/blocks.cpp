// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "bound_arguments.hpp"
#include "dtype/lower_case.hpp"
#include "result_pool.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::python {
namespace {

using Given = std::optional<Tensor>;

TensorView view_of(const Given& tensor) { return tensor ? tensor->view() : TensorView{}; }

// Numbers of any type as float32.
Given float32_of(const Given& tensor) {
  if (!tensor || tensor->dtype() == DType::float32) return tensor;
  std::vector<std::byte> bytes(storage_bytes(DType::float32, checked(element_count(tensor->shape()))));
  checked(cast(tensor->view(), {DType::float32, tensor->shape(), bytes}));
  return checked(Tensor::own(DType::float32, tensor->shape(), std::move(bytes)));
}

const BlockFormat& format_of(const std::string& scheme, const std::string& spelling) {
  if (const BlockFormat* format = find_block_format(scheme, spelling)) return *format;
  std::string known;
  for (const BlockFormat& format : block_formats()) {
    if (spelling.empty() || is_same_name(format.scheme, scheme))
      known += (known.empty() ? "" : ", ") + std::string(format.scheme);
    if (is_same_name(format.scheme, scheme)) known += " of " + std::string(format.spelling);
  }
  const std::string what = "no block format \"" + scheme + (spelling.empty() ? "\"" : "\" of \"" + spelling + "\"");
  throw_error(invalid(what, "there are " + known));
}

Tensor dequantize_tensor(const Tensor& codes, const Given& scales, const std::string& scheme,
                         const std::string& spelling, const Given& global_scale, const Given& zero_points,
                         const Given& biases, const Given& group_index, const Given& table,
                         std::optional<std::pair<std::int64_t, std::int64_t>> block,
                         const std::optional<std::vector<std::int64_t>>& shape, nb::handle dtype) {
  const BlockFormat& format = format_of(scheme, spelling);
  const Given global = float32_of(global_scale), numbers = float32_of(table);
  BlockTensor tensor{.coding = format.coding,
                     .shape = {},
                     .block_rows = block ? block->first : format.block_rows,
                     .block_columns = block ? block->second : format.block_columns,
                     .codes = codes.view(),
                     .scales = view_of(scales),
                     .global_scale = view_of(global),
                     .zero_points = view_of(zero_points),
                     .biases = view_of(biases),
                     .group_index = view_of(group_index)};
  tensor.shape =
      shape ? Shape(*shape) : checked(weight_shape(format.coding, codes.dtype(), codes.shape(), tensor.scales.shape));
  tensor.table = numbers ? checked(numbers->as<float>()) : format.table;
  return dequantized(tensor, dtype);
}

nb::list block_format_rows() {
  nb::list rows;
  for (const BlockFormat& format : block_formats()) {
    nb::dict row;
    row["scheme"] = format.scheme;
    row["spelling"] = format.spelling;
    row["element"] = name(format.coding.element);
    row["bits"] = format.coding.bits;
    row["block"] = nb::make_tuple(format.block_rows, format.block_columns);
    row["order"] = format.order;
    rows.append(row);
  }
  return rows;
}

}  // namespace

Tensor dequantized(const BlockTensor& weight, nb::handle dtype) {
  NewTensor made = checked(new_tensor(dtype_of(dtype), weight.shape));
  checked(without_gil([&]() { return dequantize(weight, 0, made.view()); }));
  return std::move(made.tensor);
}

void bind_blocks(nb::module_& module) {
  module.def("dequantize", &dequantize_tensor, nb::arg("codes"), nb::arg("scales").none(), nb::arg("scheme"),
             nb::arg("spelling"), nb::arg("global_scale").none(), nb::arg("zero_points").none(),
             nb::arg("biases").none(), nb::arg("group_index").none(), nb::arg("table").none(), nb::arg("block").none(),
             nb::arg("shape").none(), nb::arg("dtype"), "The numbers of a weight in blocks.");
  module.def("block_formats", &block_format_rows, "The table of block formats.");
}

}  // namespace tensorcast::python
