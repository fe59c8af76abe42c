// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "bound_arguments.hpp"
#include "graph_tensor.hpp"
#include "options/quantize_options.hpp"
#include "result_pool.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/spelling.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::python {
namespace {

const QuantizedTensor& quantized_of(nb::handle self) { return *nb::inst_ptr<QuantizedTensor>(self); }

// A part of `self`, on its memory.
Tensor part_of(nb::handle self, DType dtype, const Shape& shape, std::span<const std::byte> part) {
  return checked(Tensor::share({dtype, shape, part}, shared_object(self)));
}

Tensor codes_of(nb::handle self) {
  const QuantizedTensor& tensor = quantized_of(self);
  return part_of(self, tensor.codes_dtype, tensor.codes_shape, tensor.codes);
}

// Sets an option from its keyword; None is the default. Texts are views of Python's.
template <class Option>
void take(const nb::dict& keywords, const Option& option, typename Option::Type& value) {
  using Value = typename Option::Type;
  if (!keywords.contains(option.name)) return;
  const nb::object given = keywords[option.name];
  if (given.is_none()) return;
  if constexpr (std::is_same_v<Value, std::optional<float>>) {
    double number = 0.0;
    if (real_number(nb::str(option.name).ptr(), given.ptr(), number) != 1) throw nb::python_error();
    value = static_cast<float>(number);
  } else if constexpr (!std::is_same_v<Value, std::span<const float>>) {
    read_bound_option(given, option, value);
  }
}

QuantizedTensor quantize_tensor(const Tensor& weight, const std::string& scheme, bool is_gguf,
                                const nb::dict& keywords) {
  if (!is_gguf && find_quantize_recipe(scheme) == nullptr) {
    std::string known;
    std::string_view last;
    for (const QuantizeRecipe& row : quantize_recipes()) {
      if (row.scheme != last) known += (known.empty() ? "" : ", ") + std::string(row.scheme);
      last = row.scheme;
    }
    throw_error(invalid("no scheme \"" + scheme + "\"", "there are " + known));
  }
  QuantizeOptions options;
  options::for_each(options::quantize_options,
                    [&](const auto& option) { take(keywords, option, options.*option.member); });
  std::vector<float> importance;
  if (keywords.contains("importance")) importance = nb::cast<std::vector<float>>(keywords["importance"]);
  options.importance = importance;
  const BlockFormat* format = is_gguf ? find_block_format(scheme, "gguf") : nullptr;
  if (is_gguf && format == nullptr) throw_error(invalid("GGUF has no \"" + scheme + "\""));
  return checked(without_gil([&]() {
    const Execution execution{.memory = result_memory()};
    return is_gguf ? quantize(weight.view(), *format, options, execution)
                   : quantize(weight.view(), scheme, options, execution);
  }));
}

// Scales of 8 bits as their codes.
std::optional<Tensor> scales_of(nb::handle self) {
  const QuantizedTensor& tensor = quantized_of(self);
  if (tensor.scales_dtype == DType::undefined) return std::nullopt;
  const DType shown = tensor.scales_dtype == DType::float32 ? DType::float32 : DType::uint8;
  return part_of(self, shown, tensor.scales_shape, tensor.scales);
}

std::optional<Tensor> zero_points_of(nb::handle self) {
  const QuantizedTensor& tensor = quantized_of(self);
  if (tensor.zero_points.empty()) return std::nullopt;
  return part_of(self, DType::int8, tensor.scales_shape, std::as_bytes(std::span(tensor.zero_points)));
}

nb::list spelled_tensors(const QuantizedTensor& tensor, const std::string& spelling, nb::handle weights) {
  nb::list rows;
  for (SpelledTensor& spelled : checked(spell(tensor, spelling, dtype_or_undefined(weights)))) {
    rows.append(
        nb::make_tuple(spelled.suffix, checked(Tensor::own(spelled.dtype, spelled.shape, std::move(spelled.bytes)))));
  }
  return rows;
}

nb::bytes bytes_of(std::span<const std::byte> bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// What pickle keeps of a weight: scheme, recipe and coding; the weight's shape and blocks; codes, scales and the rest.
nb::tuple state_of(const QuantizedTensor& t) {
  const BlockCoding& c = t.coding;
  return nb::make_tuple(
      nb::make_tuple(t.recipe->scheme, t.recipe->recipe),
      nb::make_tuple(static_cast<int>(c.element), c.bits, static_cast<int>(c.packing), c.offset, c.zero_added,
                     static_cast<int>(c.zeros), c.positive_zero, static_cast<int>(c.scale), static_cast<int>(c.global),
                     c.swizzled, c.factor, c.transposed, static_cast<int>(c.gguf)),
      std::vector<std::int64_t>(t.shape.begin(), t.shape.end()), t.block_rows, t.block_columns,
      static_cast<int>(t.codes_dtype), std::vector<std::int64_t>(t.codes_shape.begin(), t.codes_shape.end()),
      bytes_of(t.codes), static_cast<int>(t.scales_dtype),
      std::vector<std::int64_t>(t.scales_shape.begin(), t.scales_shape.end()), bytes_of(t.scales), t.global_scale,
      bytes_of(std::as_bytes(std::span(t.zero_points))));
}

template <class Bytes>
void read_bytes(const nb::handle& given, Bytes& bytes) {
  const auto whole = nb::cast<nb::bytes>(given);
  bytes.resize(whole.size());
  std::memcpy(bytes.data(), whole.c_str(), whole.size());
}

Shape shape_in(const nb::handle& given) { return Shape(nb::cast<std::vector<std::int64_t>>(given)); }

template <class Enumerator>
Enumerator number_in(const nb::handle& given) {
  return static_cast<Enumerator>(nb::cast<int>(given));
}

// Throws if the parts do not fit together.
void set_state(QuantizedTensor& made, const nb::tuple& state) {
  QuantizedTensor t;
  const nb::tuple names = state[0], coding = state[1];
  t.recipe = find_quantize_recipe(nb::cast<std::string>(names[0]), nb::cast<std::string>(names[1]));
  if (t.recipe == nullptr) throw_error(invalid("this version has no such recipe"));
  t.coding = {.element = number_in<DType>(coding[0]),
              .bits = nb::cast<int>(coding[1]),
              .packing = number_in<BlockPacking>(coding[2]),
              .offset = nb::cast<int>(coding[3]),
              .zero_added = nb::cast<int>(coding[4]),
              .zeros = number_in<BlockPacking>(coding[5]),
              .positive_zero = nb::cast<bool>(coding[6]),
              .scale = number_in<DType>(coding[7]),
              .global = number_in<GlobalScale>(coding[8]),
              .swizzled = nb::cast<bool>(coding[9]),
              .factor = nb::cast<float>(coding[10]),
              .transposed = nb::cast<bool>(coding[11]),
              .gguf = number_in<GgufBlock>(coding[12])};
  t.shape = shape_in(state[2]);
  t.block_rows = nb::cast<std::int64_t>(state[3]);
  t.block_columns = nb::cast<std::int64_t>(state[4]);
  t.codes_dtype = number_in<DType>(state[5]);
  t.codes_shape = shape_in(state[6]);
  read_bytes(state[7], t.codes);
  t.scales_dtype = number_in<DType>(state[8]);
  t.scales_shape = shape_in(state[9]);
  read_bytes(state[10], t.scales);
  t.global_scale = nb::cast<std::optional<float>>(state[11]);
  read_bytes(state[12], t.zero_points);
  const BlockTensor parts = t.tensor();
  checked(code_range(parts, 0, 0));
  if (t.codes.size() != storage_bytes(t.codes_dtype, checked(element_count(t.codes_shape)))) {
    throw_error(invalid("the codes do not fit their shape"));
  }
  new (&made) QuantizedTensor(std::move(t));
}

nb::list recipe_rows() {
  nb::list rows;
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    nb::dict row;
    row["scheme"] = recipe.scheme;
    row["recipe"] = recipe.recipe;
    row["default"] = find_quantize_recipe(recipe.scheme) == &recipe;
    row["spelling"] = recipe.spelling;
    row["scale"] = recipe.scale;
    row["element"] = recipe.element;
    row["uses_weights_dtype"] = recipe.uses_weights_dtype;
    row["compared_with"] = recipe.is_from_source ? "source" : "tool";
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_quantize(nb::module_& module) {
  nb::class_<QuantizedTensor>(module, "Quantized", "A weight in blocks, with the memory of its parts.")
      .def_prop_ro("scheme", [](const QuantizedTensor& t) { return t.recipe->scheme; })
      .def_prop_ro("recipe", [](const QuantizedTensor& t) { return t.recipe->recipe; })
      .def_prop_ro("block", [](const QuantizedTensor& t) { return std::pair(t.block_rows, t.block_columns); })
      .def_prop_ro("global_scale", [](const QuantizedTensor& t) { return t.global_scale; })
      .def("element_codes",
           [](const QuantizedTensor& t) {
             return checked(Tensor::own(DType::uint8, t.shape, checked(element_codes(t))));
           })
      .def("codes", &codes_of)
      .def("__getstate__", &state_of)
      .def("__setstate__", &set_state)
      .def("scales", &scales_of)
      .def("zero_points", &zero_points_of)
      .def("spelled", &spelled_tensors, nb::arg("spelling"), nb::arg("weights"))
      .def(
          "dequantize", [](const QuantizedTensor& self, nb::handle dtype) { return dequantized(self.tensor(), dtype); },
          nb::arg("dtype"));
  module.def("quantize", &quantize_tensor, nb::arg("weight"), nb::arg("scheme"), nb::arg("is_gguf"), nb::arg("options"),
             "A weight in blocks, as a recipe makes them.");
  module.def("recipes", &recipe_rows, "The table of recipes.");
}

}  // namespace tensorcast::python
