// SPDX-License-Identifier: Apache-2.0
// MLX: codes in words of uint32, scales and biases for each group; `quantization` in config.json, with exceptions for
// single modules. Metal's affine quantization of transformers is the same, with qbiases.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "dtype/lookup.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto keys_of_modules =
    joined(deciding_keys<"bits group_size">(KeyType::integer), deciding_keys<"mode">(KeyType::text));
// Other members are settings of modules; false: it is not quantized.
constexpr auto keys_of_mlx = joined(keys_of_modules, deciding_keys<"*">(KeyType::object_or_flag));

// The names of single modules that have settings.
class OwnSettings {
 public:
  explicit OwnSettings(const Json& section) {
    for (const auto& [key, value] : section.items()) {
      if (!value.is_object() && !value.is_boolean()) continue;
      backwards_.emplace(std::string(key.rbegin(), key.rend()), key);
      lengths_.insert(key.size());
    }
  }

  // Returns a name that is the module's with a longer or a shorter prefix, and may be meant for it; "": there is none.
  [[nodiscard]] std::string_view under_other_prefix(const std::string& module) const {
    const std::string backwards(module.rbegin(), module.rend()), longer = backwards + '.';
    if (const auto found = backwards_.lower_bound(longer);
        found != backwards_.end() && found->first.starts_with(longer)) {
      return found->second;
    }
    for (const std::size_t length : lengths_) {
      if (length >= backwards.size()) break;
      const auto found = backwards[length] == '.' ? backwards_.find(backwards.substr(0, length)) : backwards_.end();
      if (found != backwards_.end()) return found->second;
    }
    return {};
  }

 private:
  std::map<std::string, std::string> backwards_;  // names by their letters from the last on
  std::set<std::size_t> lengths_;
};

constexpr std::int64_t code_word_bits = 32, most_bits = 8;

void complete_affine(const ModelTensors& tensors, const std::string& module, const std::string& source,
                     std::int64_t bits, std::size_t scales, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  layer.scheme = fmt::format("int{}-affine", bits);
  layer.coding = {.element = DType::uint8, .bits = static_cast<int>(bits)};
  builder.check_scales(scales, false, source);
  std::optional<std::size_t> biases = builder.add(tensor_of(module, "biases"), PartRole::biases);
  if (!biases) biases = builder.need(tensor_of(module, "qbiases"), PartRole::biases);
  if (!builder.ok()) return;
  if (layer.shape.back() % layer.block_columns != 0) {
    return builder.fail(fmt::format("{} names groups of {}, and rows of {} codes of {} bits are not whole groups",
                                    source, layer.block_columns, layer.shape.back(), bits));
  }
  builder.expect(is_plain_float(tensors[*biases].dtype) && tensors[*biases].shape == tensors[scales].shape, biases,
                 "biases are like scales, {}", type_and_shape(tensors[scales]));
}

// The modes mxfp4, mxfp8 and nvfp4, whose scales are bytes.
constexpr StoredScheme stored_by_mlx[] = {{.scheme = "nvfp4", .coding = nvfp4_coding(GlobalScale::none)},
                                          {.scheme = "mxfp8", .coding = mx_coding(DType::float8_e4m3fn, 8)},
                                          {.scheme = "mxfp4", .coding = mx_coding(DType::float4_e2m1fn, 4)}};

void complete_mx(const ModelTensors& tensors, const StoredScheme& stored, std::int64_t bits, std::size_t scales,
                 LayerBuilder& builder) {
  Layer& layer = builder.layer();
  const bool nv = stored.coding.scale == DType::float8_e4m3fn;
  layer.coding = stored.coding;
  if (bits != layer.coding.bits || layer.block_columns != stored.block()) {
    builder.fail(fmt::format("{} has other bits or groups than its description names", stored.scheme));
  }
  if (tensors[scales].dtype != DType::uint8 && !nv) builder.check_scale_type(scales, true);
  if (nv && tensors[scales].dtype != DType::uint8) builder.fail("scales of MLX's nvfp4 are uint8", scales);
  builder.check_grid(scales, "its mode");
}

void find_mlx(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  constexpr std::string_view affine = "affine";
  constexpr std::int64_t affine_group = 64, affine_bits = 4;
  const OwnSettings settings(description->section);
  for (const auto& [i, codes, module] : tensors.scaled_modules("scales")) {
    const Json* own = object_in(description->section, module);
    // What a module's own settings leave out, MLX takes from their mode, and not from the model's settings.
    const Json& said_of_it = own == nullptr ? description->section : *own;
    std::string mode = text_in(said_of_it, "mode");
    if (mode.empty()) mode = affine;
    const StoredScheme* const stored = find_row(stored_by_mlx, &StoredScheme::scheme, mode);
    const std::int64_t bits = size_in(said_of_it, "bits").value_or(stored ? stored->coding.bits : affine_bits);
    LayerBuilder builder(tensors, "mlx", tensor_of(module, "weight"), codes, i);
    Layer& layer = builder.layer();
    layer.scheme = mode;
    layer.block_rows = 1;
    layer.block_columns = size_in(said_of_it, "group_size").value_or(stored ? stored->block() : affine_group);
    const auto said = description->section.find(module);
    if (said != description->section.end() && own == nullptr && !said->is_null()) {
      builder.fail(said->is_boolean() && !said->get<bool>()
                       ? fmt::format("{} says that it is not quantized, and these are codes", description->source)
                       : fmt::format("{} has settings of it that are not an object", description->source));
    } else if (own != nullptr) {
      std::string problem = key_problem(*own, keys_of_modules, description->source, tensors.accepted());
      if (!problem.empty()) builder.fail(std::move(problem));
    } else if (const std::string_view other = settings.under_other_prefix(module); !other.empty()) {
      builder.fail(fmt::format("{} has settings of \"{}\", which may be meant for it", description->source, other));
    }
    builder.need_codes_of({DType::uint32});
    if (bits < 2 || bits > most_bits || bits == 7) {
      builder.fail(fmt::format("{} names a width that MLX does not have", description->source));
    } else if (builder.ok()) {
      layer.shape = builder.codes().shape;
      std::int64_t& last = layer.shape.back();
      if (__builtin_mul_overflow(last, code_word_bits, &last)) builder.fail("its shape is too large");
      if (last % bits != 0)
        builder.fail(fmt::format("rows of {} words are not whole codes of {} bits", last / code_word_bits, bits));
      last /= bits;
    }
    if (builder.ok() && mode == affine) {
      complete_affine(tensors, module, description->source, bits, i, builder);
    } else if (builder.ok() && stored != nullptr) {
      complete_mx(tensors, *stored, bits, i, builder);
    } else {
      builder.fail(fmt::format("the mode \"{}\" of MLX is not decoded", mode));
    }
    layers.push_back(std::move(builder).done());
  }
}

}  // namespace

constinit const Spelling layouts::mlx = {
    .name = "mlx",
    .methods = {{.name = "mlx"}, {.name = "metal", .list = "modules_to_not_convert", .list_is_open = true}},
    .keys = keys_of_mlx,
    .find = find_mlx};

}  // namespace tensorcast::quantized
