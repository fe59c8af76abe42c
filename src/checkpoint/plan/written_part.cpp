// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/written_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/plan/option_json.hpp"
#include "options/quantize_options.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::LayerContent;
using quantized::RespelledLayer;
using quantized::ScaleChange;

constexpr std::uint64_t most_constant_bytes = std::uint64_t{1} << 23;

nlohmann::ordered_json content_json(const LayerContent& content) {
  nlohmann::ordered_json json = {{"name", content.name},
                                 {"scheme", content.scheme},
                                 {"shape", content.shape},
                                 {"element", static_cast<int>(content.element)},
                                 {"bits", content.bits},
                                 {"block", {content.block_rows, content.block_columns}},
                                 {"scales", name(content.scales)},
                                 {"global", static_cast<int>(content.global)},
                                 {"globals", content.globals},
                                 {"input_scale", static_cast<int>(content.input_scale)},
                                 {"rotation", content.rotation},
                                 {"zero_points", content.zero_points},
                                 {"beside_mxfp4", content.beside_mxfp4}};
  if (content.exact_scales != DType::undefined) json["exact_scales"] = name(content.exact_scales);
  return json;
}

nlohmann::ordered_json quantizing_json(const quantized::Quantizing& quantizing) {
  nlohmann::ordered_json json = {
      {"scheme", quantizing.scheme}, {"recipe", quantizing.options.recipe}, {"numbers", name(quantizing.numbers)}};
  // Those that each plan has, then those that were asked for.
  for (const bool if_given : {false, true}) {
    options::for_each(options::quantize_options, [&](const auto& option) {
      if (option.planned_if_given == if_given) append_json(json, option, quantizing.options.*option.member);
    });
  }
  if (!quantizing.importance.file.empty()) {
    const quantized::ImportanceEntry& entry = quantizing.importance;
    json["importance"] = {{"file", entry.file}, {"name", entry.name}, {"row", entry.row}, {"version", entry.version}};
  }
  return json;
}

template <class Choice>
bool read_choice(const nlohmann::json& json, Choice last, Choice& choice) {
  const auto number = json.get<std::int64_t>();
  if (number < 0 || number > static_cast<std::int64_t>(last)) return false;
  choice = static_cast<Choice>(number);
  return true;
}

// Folders have no GGUF. The quantizer checks the numbers.
bool read_quantizing(const nlohmann::json& json, quantized::Quantizing& quantizing) {
  quantizing.scheme = json.at("scheme").get<std::string>();
  const Result<DType> numbers = parse_dtype(json.at("numbers").get<std::string>());
  const auto recipe = json.at("recipe").get<std::string>();
  const QuantizeRecipe* known = find_quantize_recipe(quantizing.scheme, recipe);
  if (!numbers || known == nullptr) return false;
  quantizing.numbers = *numbers;
  if (!recipe.empty()) quantizing.options.recipe = known->recipe;
  if (json.contains("importance")) {
    quantizing.importance = {.file = json.at("importance").at("file").get<std::string>(),
                             .name = json.at("importance").at("name").get<std::string>(),
                             .row = json.at("importance").at("row").get<std::int64_t>(),
                             .version = json.at("importance").at("version").get<std::string>()};
  }
  return options::all_of(options::quantize_options, [&](const auto& option) {
    return read_json(json, option, quantizing.options.*option.member);
  });
}

// Reads a layer with its name and shape, which those of another spelling have in their content.
std::shared_ptr<DecodedLayer> read_sibling(const nlohmann::json& json) {
  std::shared_ptr<DecodedLayer> sibling = layer_from_json(json.at("layer"));
  if (sibling == nullptr) return nullptr;
  sibling->layer.name = json.at("name").get<std::string>();
  sibling->layer.shape = json.at("shape").get<std::vector<std::int64_t>>();
  const Result<std::size_t> count = element_count(sibling->layer.shape);
  return count && *count < (std::size_t{1} << 56) ? sibling : nullptr;
}

bool read_content(const nlohmann::json& json, LayerContent& content) {
  content.name = json.at("name").get<std::string>();
  content.scheme = json.at("scheme").get<std::string>();
  content.shape = json.at("shape").get<std::vector<std::int64_t>>();
  content.bits = json.at("bits").get<int>();
  content.block_rows = json.at("block").at(0).get<std::int64_t>();
  content.block_columns = json.at("block").at(1).get<std::int64_t>();
  content.globals = json.at("globals").get<std::size_t>();
  content.rotation = json.at("rotation").get<std::int64_t>();
  content.zero_points = json.at("zero_points").get<bool>();
  content.beside_mxfp4 = json.at("beside_mxfp4").get<bool>();
  const Result<DType> scales = parse_dtype(json.at("scales").get<std::string>());
  constexpr std::int64_t most_block = std::int64_t{1} << 31;
  const Result<std::size_t> count = element_count(content.shape);
  bool known = scales && count && *count < (std::size_t{1} << 56) && content.shape.size() >= 2 && content.bits >= 1 &&
               content.bits <= 8 && content.block_rows >= 0 && content.block_rows < most_block &&
               content.block_columns >= 0 && content.block_columns < most_block &&
               (content.block_rows == 0) == (content.block_columns == 0) && content.globals < most_constant_bytes;
  if (scales) content.scales = *scales;
  if (json.contains("exact_scales")) {
    const Result<DType> exact = parse_dtype(json.at("exact_scales").get<std::string>());
    known =
        known && exact && (*exact == DType::bfloat16 || *exact == DType::float16) && content.scales == DType::float32;
    if (known) content.exact_scales = *exact;
  }
  const bool number = content.scales == DType::float32 || content.scales == DType::float16 ||
                      content.scales == DType::bfloat16 || content.scales == DType::float8_e8m0fnu ||
                      content.scales == DType::float8_e4m3fn;
  known = known && number && read_choice(json.at("element"), quantized::Element::table, content.element);
  known = known && read_choice(json.at("global"), quantized::GlobalScale::divisor, content.global);
  return known && read_choice(json.at("input_scale"), quantized::GlobalScale::divisor, content.input_scale);
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

// Returns no bytes if the text is not hexadecimal digits in pairs.
std::vector<std::byte> bytes_of(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

}  // namespace

nlohmann::ordered_json written_json(const WrittenPart& part) {
  const RespelledLayer& layer = *part.layer;
  nlohmann::ordered_json json = {{"spelling", layer.written.layer.spelling},
                                 {"tensor", part.tensor},
                                 {"content", content_json(layer.content)},
                                 {"becomes", content_json(layer.becomes)},
                                 {"change", static_cast<int>(layer.change.kind)},
                                 {"exponents", layer.change.exponents},
                                 {"source", layer_json(part.source)}};
  if (layer.quantizing) json["quantizing"] = quantizing_json(*layer.quantizing);
  for (const DecodedLayer& sibling : part.siblings) {
    json["siblings"].push_back(
        {{"name", sibling.layer.name}, {"shape", sibling.layer.shape}, {"layer", layer_json(sibling)}});
  }
  const std::vector<std::byte>& constant = layer.written.tensors[part.tensor].constant;
  if (!constant.empty()) json["constant"] = hexadecimal(constant);
  return json;
}

std::shared_ptr<WrittenPart> written_from_json(const nlohmann::json& json) {
  constexpr int most_exponent = 300;
  auto part = std::make_shared<WrittenPart>();
  auto layer = std::make_shared<RespelledLayer>();
  const std::shared_ptr<DecodedLayer> source = layer_from_json(json.at("source"));
  const auto* writer = quantized::find_writer(json.at("spelling").get<std::string>());
  if (source == nullptr || writer == nullptr) return nullptr;
  bool known = read_content(json.at("content"), layer->content) && read_content(json.at("becomes"), layer->becomes);
  known = known && read_choice(json.at("change"), ScaleChange::Kind::to_mxfp4, layer->change.kind);
  layer->change.exponents = json.at("exponents").get<std::vector<int>>();
  for (const int exponent : layer->change.exponents) known = known && std::abs(exponent) < most_exponent;
  if (json.contains("quantizing")) known = known && read_quantizing(json.at("quantizing"), layer->quantizing.emplace());
  if (json.contains("siblings")) {
    for (const nlohmann::json& entry : json.at("siblings")) {
      const std::shared_ptr<DecodedLayer> sibling = read_sibling(entry);
      if (sibling == nullptr) return nullptr;
      part->siblings.push_back(*sibling);
    }
  }
  known = known && (layer->quantizing || source->layer.is_quantized());
  if (!known) return nullptr;
  // What is read is what the layer was, perhaps with other scales.
  known = layer->content.shape == layer->becomes.shape && layer->content.bits == layer->becomes.bits;
  const auto columns = layer->content.grid_columns(), becomes = layer->becomes.grid_columns();
  switch (layer->change.kind) {
    case ScaleChange::Kind::none:
      known = known && columns == becomes && layer->content.grid_rows() == layer->becomes.grid_rows() &&
              layer->content.scales == layer->becomes.scales;
      break;
    case ScaleChange::Kind::to_nvfp4:
      known = known && 2 * columns == becomes && layer->becomes.scales == DType::float8_e4m3fn;
      break;
    case ScaleChange::Kind::to_mxfp4:
      known = known && columns == 2 * becomes && layer->becomes.scales == DType::float8_e8m0fnu;
      break;
  }
  layer->written = quantized::spell(*writer, layer->becomes);
  part->tensor = json.at("tensor").get<std::size_t>();
  if (!known || !layer->written.ok() || part->tensor >= layer->written.tensors.size()) return nullptr;
  quantized::WrittenTensor& tensor = layer->written.tensors[part->tensor];
  if (json.contains("constant")) tensor.constant = bytes_of(json.at("constant").get<std::string>());
  const bool computed = tensor.role == quantized::PartRole::codes || tensor.role == quantized::PartRole::scales ||
                        (layer->quantizing && (tensor.role == quantized::PartRole::global_scale ||
                                               tensor.role == quantized::PartRole::zero_points));
  if ((!computed || !tensor.constant.empty()) && tensor.constant.size() != tensor.info.bytes) return nullptr;
  if (layer->quantizing) {
    const auto quantizer = quantized::quantizer_of(*layer->quantizing, Shape(layer->becomes.shape));
    if (!quantizer) return nullptr;
    layer->recipe = quantizer->layout().recipe->recipe;
  }
  part->source = *source;
  part->source.layer.name = layer->content.name;
  if (layer->quantizing) {
    part->source.layer.shape = layer->content.shape;
    part->source.layer.shape = quantized::shape_to_quantize(part->source.layer);  // turned back
  }
  part->layer = std::move(layer);
  return part;
}

}  // namespace tensorcast::checkpoint
