// SPDX-License-Identifier: Apache-2.0
// Writes layers as a spelling has them: names, types, shapes and packing of their tensors, and the configuration.
//
// Three steps, for a layer that exists in another spelling and for a weight that is quantized alike:
// 1. spell() turns a LayerContent, which says what a layer is, into a WrittenLayer: the tensors that a spelling has.
// 2. A LayerPacker makes the bytes of these tensors, range by range. It asks a LayerCodes for element codes, one a
// byte,
//    and for scales in rows; a quantizer implements LayerCodes, and RespelledCodes reads a layer.
// 3. describe() makes the configuration from all written layers of a model.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layer/layer.hpp"
#include "quantized/layout/spelling.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

// What a layer is, whatever its spelling. The shape is [..., outputs, inputs]. Its coding says what codes, scales and
// LayerCodes::global_scales() mean, not where they lie; integers are int8. It may be rotated, and has no other
// deviation.
struct LayerContent : BlockWeight {
  DType wide_scales = DType::float32;           // the type of scales that are no bytes
  DType exact_scales = DType::undefined;        // a narrower type that holds float32 scales exactly: the weights' own
  std::size_t globals = 1;                      // how many global scales: 1, or one for each matrix
  GlobalScale input_scale = GlobalScale::none;  // a scale of activations that was calibrated; `none`: there is none
  bool zero_points = false;                     // integers only; else they are symmetric
  bool beside_mxfp4 = false;  // another layer of the model is MXFP4: DeepSeek-V4 names scales otherwise

  // As LayerCodes::scales() gives them.
  [[nodiscard]] DType scales() const noexcept { return coding.scale == DType::undefined ? wide_scales : coding.scale; }
  // In files whose loaders cast scales to the model's type, in which tools make and keep them.
  [[nodiscard]] DType stored_scales() const noexcept {
    return exact_scales == DType::undefined ? scales() : exact_scales;
  }
  void set_scales(DType type) noexcept {
    const bool are_bytes = bit_width(type) == 8;
    coding.scale = are_bytes ? type : DType::undefined;
    if (!are_bytes) wide_scales = type;
  }
};

struct WrittenTensor {
  PartRole role = PartRole::codes;
  formats::TensorInfo info;
  // Its bytes, if they are known without the weight: a shape, a marker. Else empty, and a LayerPacker makes them.
  std::vector<std::byte> constant = {};
};

struct WrittenLayer {
  Layer layer;                         // as find_layers() finds it in the output; parts[i].tensor is i
  std::vector<WrittenTensor> tensors;  // the codes are first
  std::string refusal;                 // why the spelling cannot have such a layer; the rest is then not to be used

  [[nodiscard]] bool ok() const noexcept { return refusal.empty(); }
  // Unless it fits, keeps why the spelling cannot have the layer, if it is the first reason. Returns ok().
  template <class... Args>
  bool need(bool fits, fmt::format_string<Args...> why, Args&&... args) {
    if (!fits && ok()) refusal = fmt::format(why, std::forward<Args>(args)...);
    return ok();
  }
};

[[nodiscard]] WrittenLayer spell(const Spelling& writer, const LayerContent& content);

// What a spelling says of the inputs of layers of a scheme that has no scale for them.
[[nodiscard]] DynamicActivations dynamic_activations(const Spelling& writer, std::string_view scheme) noexcept;

// All layers of a model that are written, and what its configuration should say beside them.
struct WrittenModel {
  std::vector<Layer> layers;             // as WrittenLayer::layer
  std::vector<std::string> unquantized;  // modules whose weights are plain matrices: "lm_head"
  bool float8_cache = false;             // scales of keys and values are there, for a cache of float8
  std::string scale_format = {};         // "ue8m0": scales are powers of two, whatever their type; mostly ""
};

struct WrittenConfig {
  std::string section;       // quantization_config of config.json, as JSON; "": none
  std::string own_file;      // hf_quant_config.json; "": none
  std::string metadata_key;  // of __metadata__ in each file; "": none
  std::string metadata_text;
  std::string refusal = {};  // why the spelling cannot have such layers beside each other; the rest is then empty
  std::string refused_layer = {};
};
[[nodiscard]] WrittenConfig describe(const Spelling& writer, const WrittenModel& model);

// A regular expression that matches this text alone.
[[nodiscard]] std::string literal_pattern(std::string_view text);
// The names of modules, or patterns "re:..." that match these and none of `others`, if those are much fewer.
[[nodiscard]] std::vector<std::string> module_targets(const std::vector<std::string>& modules,
                                                      const std::vector<std::string>& others);

// Appends a tensor with its count and bytes.
WrittenTensor& add_tensor(WrittenLayer& written, PartRole role, std::string name, DType dtype,
                          std::vector<std::int64_t> shape);
// The shape of scales without padding: [..., rows of blocks, blocks of a row].
[[nodiscard]] std::vector<std::int64_t> grid_shape(const LayerContent& content);
// The codes' shape with `elements` in `units` units.
[[nodiscard]] std::vector<std::int64_t> packed_shape(const LayerContent& content, std::int64_t elements,
                                                     std::int64_t units);
// Refuses unless the inputs are whole groups of `size`.
void need_whole_groups(const LayerContent& content, std::int64_t size, WrittenLayer& written);
// Refuses a scheme that the spelling does not have.
void refuse_scheme(const LayerContent& content, WrittenLayer& written, std::string_view instead);

}  // namespace tensorcast::quantized
