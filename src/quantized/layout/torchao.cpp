// SPDX-License-Identifier: Apache-2.0
// torchao's subclasses of tensors, as its safetensors support flattens them: "x.weight" is "x._weight_qdata" and its
// scales, and the metadata describe each tensor under its name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "dtype/lookup.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

// Of config.json, and the descriptions of tensors under their names.
constexpr auto keys_of_torchao =
    joined(keys_of<"quant_method">(KeyType::text), keys_of<"quant_type">(KeyType::any),
           keys_of<"quant_type_kwargs">(KeyType::object), keys_of<"modules_to_not_convert">(KeyType::list),
           keys_of<"include_input_output_embeddings untie_embedding_weights">(KeyType::flag),
           deciding_keys<"*">(KeyType::object));
constexpr auto keys_of_tensors = joined(keys_of<"_type">(KeyType::text), keys_of<"_data">(KeyType::object),
                                        keys_of<"_tensor_data_names">(KeyType::list));

// Attributes that tell how activations are quantized, or which kernel multiplies, change no weight.
constexpr auto keys_of_float8 = joined(keys_of<"block_size">(KeyType::list),
                                       keys_of<"mm_config act_quant_kwargs kernel_preference dtype">(KeyType::object));
constexpr auto keys_of_intx =
    joined(keys_of<"target_dtype dtype">(KeyType::object), keys_of<"block_size">(KeyType::list),
           keys_of<"activation_quantization">(KeyType::any));
constexpr auto keys_of_int8 = joined(keys_of<"act_quant_kwargs dtype">(KeyType::object),
                                     keys_of<"reduce_range">(KeyType::flag), keys_of<"block_size">(KeyType::list));
constexpr auto keys_of_mx =
    joined(keys_of<"elem_dtype orig_dtype kernel_preference act_quant_kwargs">(KeyType::object),
           keys_of<"block_size">(KeyType::integer), keys_of<"is_swizzled_scales">(KeyType::flag));
constexpr auto keys_of_nvfp4 =
    joined(keys_of<"block_size">(KeyType::integer), keys_of<"orig_dtype act_quant_kwargs">(KeyType::object),
           keys_of<"use_triton_kernel is_swizzled_scales">(KeyType::flag));
constexpr auto keys_of_int4 =
    joined(keys_of<"block_size shape">(KeyType::list), keys_of<"activation_dtype">(KeyType::object));
constexpr std::string_view its_description = "its description";

// The name of a type: {"_type": "torch.dtype", "_data": "int4"}; "": none.
std::string type_in(const Json& data, std::string_view key) {
  const Json* type = object_in(data, key);
  return type == nullptr ? std::string() : text_in(*type, "_data");
}

// By elem_dtype.
constexpr StoredScheme mx_by_torchao[] = {
    {.scheme = "mxfp4", .word = "float4_e2m1fn_x2", .coding = mx_coding(DType::float4_e2m1fn, 4)},
    {.scheme = "mxfp8", .word = "float8_e4m3fn", .coding = mx_coding(DType::float8_e4m3fn, 8)},
    {.scheme = "mxfp8", .word = "float8_e5m2", .coding = mx_coding(DType::float8_e5m2, 8)}};
constexpr StoredScheme nvfp4_of_torchao = {.scheme = "nvfp4", .coding = nvfp4_coding(GlobalScale::none)};

class TorchaoLayer {
 public:
  // `prefix`: of the names of its parts. `codes` is the tensor of "qdata".
  TorchaoLayer(const ModelTensors& tensors, const std::string& name, std::string prefix, std::size_t codes)
      : tensors_(tensors), builder_(tensors, "torchao", name, codes), prefix_(std::move(prefix)) {}

  Layer made(const Json& description) && {
    const std::string type = text_in(description, "_type");
    builder_.layer().scheme = type;
    const Json* data = object_in(description, "_data");
    if (!has_known_keys(description, keys_of_tensors)) return std::move(builder_).done();
    if (data == nullptr) {
      builder_.fail("its description has no attributes");
    } else if (const Subclass* subclass = find_subclass(type); subclass == nullptr) {
      builder_.fail(fmt::format("the type \"{}\" of torchao is not decoded", type));
    } else if (has_known_keys(*data, subclass->keys)) {
      (this->*subclass->complete)(*data);
    }
    if (builder_.ok()) check_parts(description);
    return std::move(builder_).done();
  }

 private:
  // A subclass of tensors: its attributes, and what reads them.
  struct Subclass {
    std::string_view name;
    std::span<const KnownKey> keys;
    void (TorchaoLayer::*complete)(const Json& data);
  };

  static const Subclass* find_subclass(std::string_view name) {
    static constexpr auto all =
        std::to_array<Subclass>({{"Float8Tensor", keys_of_float8, &TorchaoLayer::complete_float8},
                                 {"Int4Tensor", keys_of_int4, &TorchaoLayer::complete_int4},
                                 {"Int8Tensor", keys_of_int8, &TorchaoLayer::complete_integers},
                                 {"IntxUnpackedToInt8Tensor", keys_of_intx, &TorchaoLayer::complete_integers},
                                 {"MXTensor", keys_of_mx, &TorchaoLayer::complete_mx},
                                 {"NVFP4Tensor", keys_of_nvfp4, &TorchaoLayer::complete_nvfp4}});
    const auto found = std::ranges::find(all, name, &Subclass::name);
    return found == all.end() ? nullptr : &*found;
  }

  bool has_known_keys(const Json& object, std::span<const KnownKey> keys) {
    std::string problem = key_problem(object, keys, its_description, tensors_.accepted());
    if (!problem.empty()) builder_.fail(std::move(problem));
    return builder_.ok();
  }

  // All parts that the description lists are those that were found.
  void check_parts(const Json& description) {
    const std::vector<std::string> names = texts_in(description, "_tensor_data_names");
    for (const std::string& name : names) {
      const std::optional<std::size_t> part = tensors_.find(prefix_ + name);
      if (!part)
        return builder_.fail(fmt::format("its codes need the tensor \"{}{}\", which is missing", prefix_, name));
      const auto& parts = builder_.layer().parts;
      if (std::ranges::any_of(parts, [&](const Part& one) { return one.tensor == *part; })) continue;
      return builder_.fail(fmt::format("its part \"{}\" is not known", name), part);
    }
    for (const Part& part : builder_.layer().parts) {
      const std::string& name = tensors_[part.tensor].name;
      const bool listed = std::ranges::any_of(names, [&](const std::string& one) { return name == prefix_ + one; });
      if (!listed)
        return builder_.fail(fmt::format("its description does not list the part \"{}\"", name), part.tensor);
    }
  }

  // Blocks as a list with a size for each dimension: of all leading dimensions 1.
  void set_blocks(const Json& data) {
    Layer& layer = builder_.layer();
    const std::size_t rank = layer.shape.size();
    const std::vector<std::int64_t> sizes = sizes_in(data, "block_size");
    if (!builder_.ok()) return;
    if (sizes.size() != rank || std::ranges::any_of(sizes, [](std::int64_t size) { return size < 1; })) {
      return builder_.fail("its block_size does not name a size above 0 for each dimension");
    }
    if (sizes == layer.shape) return;  // one scale
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      if (sizes[i] != 1) return builder_.fail("its blocks have several matrices");
    }
    layer.block_rows = sizes[rank - 2];
    layer.block_columns = sizes[rank - 1];
  }

  // "tensor", "channel" or another word for blocks within rows and columns.
  [[nodiscard]] std::string_view kind(std::string_view blocks) {
    const Layer& layer = builder_.layer();
    if (layer.block_rows == 0) return "tensor";
    return layer.block_rows == 1 && layer.block_columns == whole_row(layer.shape) ? "channel" : blocks;
  }

  void complete_float8(const Json& data) {
    Layer& layer = builder_.layer();
    layer.scheme = "fp8";
    layer.coding = {.element =
                        builder_.codes().dtype == DType::float8_e5m2 ? DType::float8_e5m2 : DType::float8_e4m3fn};
    builder_.need_codes_of({DType::float8_e4m3fn, DType::float8_e5m2});
    builder_.set_shape(1, 1);
    set_blocks(data);
    layer.scheme = fmt::format("fp8-{}", kind("block"));
    builder_.check_scales(builder_.need(prefix_ + "scale", PartRole::scales), false, its_description);
  }

  // Integers of any width, one a byte: "target_dtype" names it, and Int8Tensor has none.
  void complete_integers(const Json& data) {
    Layer& layer = builder_.layer();
    const std::string named = type_in(data, "target_dtype"), type = data.contains("target_dtype") ? named : "int8";
    int bits = 0;
    const std::string_view digits = type.starts_with("int") ? std::string_view(type).substr(3) : std::string_view();
    std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (bits < 1 || bits > 8) {
      return builder_.fail(fmt::format("its target_dtype \"{}\" is not one of integers of 8 bits or fewer", type));
    }
    layer.scheme = fmt::format("int{}", bits);
    layer.coding = {.element = DType::int8};
    if (bits < 8) layer.deviations.integer_bits = bits;
    builder_.need_codes_of({DType::int8});
    builder_.set_shape(1, 1);
    set_blocks(data);
    layer.scheme = fmt::format("int{}-{}", bits, kind("group"));
    const std::optional<std::size_t> scales = builder_.need(prefix_ + "scale", PartRole::scales);
    builder_.check_scales(scales, false, its_description);
    const std::optional<std::size_t> zeros = builder_.add(prefix_ + "zero_point", PartRole::zero_points);
    if (!builder_.ok() || !zeros) return;
    builder_.expect(tensors_[*zeros].dtype == DType::int8 && tensors_[*zeros].shape == tensors_[*scales].shape, zeros,
                    "zero points of scales of {} are int8", shape_text(tensors_[*scales].shape));
  }

  // Pairs of signed codes along the inputs. Scales, and what is added after the product, are [inputs / group, outputs].
  void complete_int4(const Json& data) {
    Layer& layer = builder_.layer();
    layer.scheme = "int4-group";
    layer.coding = {.element = DType::int8, .bits = 4};
    layer.deviations.is_grid_transposed = true;
    builder_.need_codes_of({DType::int8, DType::uint8});
    builder_.set_shape(1, 2);
    set_blocks(data);
    if (!builder_.ok()) return;
    if (const auto shape = data.find("shape"); shape == data.end() || *shape != Json(layer.shape)) {
      return builder_.fail(fmt::format("its description names another shape than {}", shape_text(layer.shape)));
    }
    if (layer.block_rows == 0) layer.block_rows = 1, layer.block_columns = layer.shape.back();
    if (layer.block_rows != 1) return builder_.fail("its blocks have several rows");
    const std::optional<std::size_t> scales = builder_.need(prefix_ + "scale", PartRole::scales);
    builder_.check_scales(scales, false, its_description);
    const std::optional<std::size_t> added = builder_.need(prefix_ + "zero_point", PartRole::biases);
    if (!builder_.ok()) return;
    builder_.expect(is_plain_float(tensors_[*added].dtype) && tensors_[*added].shape == tensors_[*scales].shape, added,
                    "zero points are like scales, {}", type_and_shape(tensors_[*scales]));
  }

  // Codes and scales of blocks along the inputs, which are a grid or in tiles of 128 x 4.
  void complete_blocks(const StoredScheme& stored, const Json& data) {
    Layer& layer = builder_.layer();
    read_as(stored, builder_);
    const std::optional<std::size_t> scales = builder_.need(prefix_ + "scale", PartRole::scales);
    if (size_in(data, "block_size") != stored.block()) {
      return builder_.fail(
          fmt::format("blocks of {} are of {}, and its description names another size", layer.scheme, stored.block()));
    }
    if (!is_true(data, "is_swizzled_scales")) return builder_.check_scales(scales, false, its_description);
    layer.coding.swizzled = true;
    builder_.check_scale_type(scales, false);
    if (!builder_.ok()) return;
    if (layer.shape.size() != 2) return builder_.fail("scales in tiles are those of a matrix");
    builder_.check_tiles(scales);
  }

  void complete_mx(const Json& data) {
    const std::string type = type_in(data, "elem_dtype");
    if (const StoredScheme* stored = find_row(mx_by_torchao, &StoredScheme::word, type)) {
      return complete_blocks(*stored, data);
    }
    builder_.layer().scheme = "mxfp8";
    builder_.fail(fmt::format("its elem_dtype \"{}\" is not decoded", type));
  }

  void complete_nvfp4(const Json& data) {
    Layer& layer = builder_.layer();
    complete_blocks(nvfp4_of_torchao, data);
    if (const auto global = builder_.add(prefix_ + "per_tensor_scale", PartRole::global_scale)) {
      layer.coding.global = GlobalScale::factor;
      builder_.check_global(global);
    }
    builder_.add(prefix_ + "act_per_tensor_scale", PartRole::activations);
  }

  const ModelTensors& tensors_;
  LayerBuilder builder_;
  const std::string prefix_;
};

void find_torchao(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  for (const auto& [name, value] : description->section.items()) {
    const std::size_t dot = name.rfind('.');
    if (!value.is_object() || dot == std::string::npos || text_in(value, "_type") == "Tensor") continue;
    std::string prefix = fmt::format("{}._{}_", name.substr(0, dot), name.substr(dot + 1));
    std::optional<std::size_t> codes = tensors.find(prefix + "qdata");
    for (const std::string& part : texts_in(value, "_tensor_data_names")) {  // of a type that is not known
      if (!codes) codes = tensors.find(prefix + part);
    }
    if (!codes) continue;  // of another shard
    layers.push_back(TorchaoLayer(tensors, name, std::move(prefix), *codes).made(value));
  }
}

}  // namespace

constinit const Spelling layouts::torchao = {
    .name = "torchao", .methods = {{.name = "torchao"}}, .keys = keys_of_torchao, .find = find_torchao};

}  // namespace tensorcast::quantized
