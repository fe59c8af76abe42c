// SPDX-License-Identifier: Apache-2.0
// plan.json: the plan as text, and back from text that may be malicious.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/option_json.hpp"
#include "checkpoint/source/json_text.hpp"
#include "checkpoint/store/file_name.hpp"
#include "convert/convert_options.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "formats/format_list.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "io/sha256.hpp"
#include "options/cast_options.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast::checkpoint {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int plan_version = 2;

OrderedJson settings_json(const ConversionSettings& settings) {
  OrderedJson json;
  options::for_each(options::cast_options,
                    [&](const auto& option) { append_json(json, option, settings.options.*option.member); });
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (options::is_setting<std::decay_t<decltype(option)>>)
      append_json(json, option, settings.*option.member);
  });
  return json;
}

OrderedJson input_json(const PlannedInput& input) {
  return {{"file", input.name},
          {"bytes", input.bytes},
          {"version", input.version},
          {"header_sha256", input.header_sha256},
          {"data_begin", input.data_begin}};
}

OrderedJson tensor_json(const ShardTensor& tensor, const ConversionSettings& settings) {
  const file_conversion::PlannedTensor& planned = tensor.planned;
  OrderedJson json = {{"name", planned.target.name},
                      {"input", tensor.input},
                      {"begin", tensor.begin},
                      {"bytes", planned.bytes_in},
                      {"shape", planned.target.shape}};
  if (!planned.source_name.empty()) json["source_name"] = planned.source_name;
  if (planned.target.foreign_dtype.empty()) {
    json["from"] = name(planned.from);
    json["to"] = name(planned.target.dtype);
  } else {
    json["type"] = planned.target.foreign_dtype;
  }
  if (!planned.converts) json["copy"] = true;
  if (planned.converts && planned.scale != settings.options.scale) json["scale"] = planned.scale;
  if (tensor.decoded != nullptr) {
    json["spelling"] = planned.scheme;
    json["layer"] = layer_json(*tensor.decoded);
  }
  if (tensor.written != nullptr) json["written"] = written_json(*tensor.written);
  if (!planned.choice.empty()) json["choice"] = planned.choice;
  json["why"] = file_conversion::name(planned.reason.why);
  if (planned.reason.number != 0) json["number"] = planned.reason.number;
  if (!planned.reason.detail.empty()) json["detail"] = planned.reason.detail;
  if (planned.left) json["left"] = true;
  return json;
}

// Writes one tensor a line: the text of a large model stays readable, and its memory small.
void append_shard(std::string& text, const PlannedShard& shard, const ConversionSettings& settings) {
  OrderedJson metadata = OrderedJson::object();
  for (const auto& [key, value] : shard.metadata) metadata[key] = value;
  text += fmt::format("{{\n   \"file\": {},\n   \"bytes\": {},\n   \"metadata\": {},\n   \"tensors\": [",
                      json_quoted(shard.name), shard.bytes, metadata.dump());
  const char* comma = "";
  for (const ShardTensor& tensor : shard.tensors) {
    text += fmt::format("{}\n    {}", comma, tensor_json(tensor, settings).dump());
    comma = ",";
  }
  text += "]";
}

Error damaged(const std::string& path, std::string why) {
  return in_file(path, parse_error("the plan is damaged: " + std::move(why), "`overwrite` plans anew"));
}

// Thrown and caught in this file only.
struct Damage {
  std::string why;
};

void require(bool holds, const char* why) {
  if (!holds) throw Damage{why};
}

std::string file_name(const Json& json) {
  auto text = json.get<std::string>();
  if (Result<void> checked = check_file_name(text, ""); !checked) throw Damage{checked.error().message};
  return text;
}

std::uint64_t number(const Json& json) {
  require(json.is_number_unsigned(), "a size is not a whole number");
  return json.get<std::uint64_t>();
}

template <class Option>
void parse_option(const Json& json, const Option& option, typename Option::Type& value) {
  require(read_json(json, option, value), "an option has no such value");
}

ConversionSettings parse_settings(const Json& json) {
  ConversionSettings settings;
  options::for_each(options::cast_options,
                    [&](const auto& option) { parse_option(json, option, settings.options.*option.member); });
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (options::is_setting<std::decay_t<decltype(option)>>)
      parse_option(json, option, settings.*option.member);
  });
  return settings;
}

PlannedInput parse_input(const Json& json) {
  return {.name = file_name(json.at("file")),
          .bytes = number(json.at("bytes")),
          .version = json.at("version").get<std::string>(),
          .header_sha256 = json.at("header_sha256").get<std::string>(),
          .data_begin = number(json.at("data_begin"))};
}

DType parse_type(const Json& json) {
  const Result<DType> dtype = parse_dtype(json.get<std::string>());
  require(dtype && formats::safetensors::find_dtype(*dtype) != nullptr, "a type is unknown");
  return *dtype;
}

bool is_inside(const PlannedInput& input, std::uint64_t begin, std::uint64_t bytes) {
  return begin <= input.bytes && bytes <= input.bytes - begin;
}

void require_inside(const DecodedLayer& layer, const CheckpointPlan& plan) {
  for (const LayerPart& part : layer.parts) {
    require(part.input < plan.inputs.size(), "a part of a layer is in no file");
    require(is_inside(plan.inputs[part.input], part.begin, part.info.bytes),
            "a part of a layer is outside of its file");
  }
}

// Reads what a tensor of a layer becomes in another spelling.
void parse_written(const Json& json, const CheckpointPlan& plan, ShardTensor& tensor) {
  const std::shared_ptr<WrittenPart> part = written_from_json(json.at("written"));
  require(part != nullptr, "a layer has no such spelling");
  require_inside(part->source, plan);
  for (const DecodedLayer& sibling : part->siblings) require_inside(sibling, plan);
  const formats::TensorInfo& info = part->layer->written.tensors[part->tensor].info;
  const formats::TensorInfo& target = tensor.planned.target;
  require(info.name == target.name && info.dtype == target.dtype && info.shape == target.shape,
          "a tensor is not the one that its layer becomes");
  tensor.written = part;
  tensor.planned.written = part->tensor;
  file_conversion::set_weight(tensor.planned, *part->layer, part->source.bytes());
}

// Reads how a layer is decoded; its decoder checks that its parts fit.
void parse_layer(const Json& json, const CheckpointPlan& plan, ShardTensor& tensor) {
  const std::shared_ptr<DecodedLayer> layer = layer_from_json(json.at("layer"));
  require(layer != nullptr && layer->layer.is_quantized(), "a layer is of no kind that is known");
  require_inside(*layer, plan);
  layer->layer.name = tensor.planned.target.name;
  layer->layer.shape = tensor.planned.target.shape;
  require(layer->bytes() == tensor.planned.bytes_in, "the size of a layer is not that of its parts");
  require(tensor.planned.from == DType::float32, "a layer is decoded to another type than float32");
  tensor.planned.scheme = json.at("spelling").get<std::string>();
  require(!tensor.planned.scheme.empty(), "a layer has no spelling");
  tensor.decoded = layer;
}

ShardTensor parse_tensor(const Json& json, const CheckpointPlan& plan) {
  ShardTensor tensor;
  file_conversion::PlannedTensor& planned = tensor.planned;
  formats::TensorInfo& target = planned.target;
  target.name = json.at("name").get<std::string>();
  tensor.input = number(json.at("input"));
  tensor.begin = number(json.at("begin"));
  planned.bytes_in = number(json.at("bytes"));
  for (const Json& size : json.at("shape")) target.shape.push_back(static_cast<std::int64_t>(number(size)));
  const Result<std::size_t> count = element_count(target.shape);
  require(count.ok(), "a shape is too large");
  target.count = *count;
  if (json.contains("type")) {
    const auto* entry = formats::safetensors::find_dtype(json.at("type").get<std::string>());
    require(entry != nullptr && entry->dtype == DType::undefined, "a type is unknown");
    target.foreign_dtype = entry->spelling;
    target.bytes = planned.bytes_in;
    require(target.count <= planned.bytes_in && planned.bytes_in == target.count * (entry->bits / 8),
            "the size of a tensor does not fit its shape");
  } else {
    planned.from = parse_type(json.at("from"));
    target.dtype = parse_type(json.at("to"));
    if (json.contains("written")) parse_written(json, plan, tensor);
    if (json.contains("layer")) {
      parse_layer(json, plan, tensor);
    } else {
      require(storage_bytes(planned.from, target.count) == planned.bytes_in,
              "the size of a tensor does not fit its shape");
    }
    target.bytes = storage_bytes(target.dtype, target.count);
    require(target.bytes != SIZE_MAX, "a shape is too large");
    planned.scale = json.value("scale", plan.settings.options.scale);
    require(std::isfinite(planned.scale), "a scale is not finite");
    planned.converts = planned.from != target.dtype || planned.scale != 1.0 || tensor.decoded != nullptr;
    require(tensor.written == nullptr || (tensor.decoded == nullptr && planned.from == target.dtype),
            "a tensor of another spelling is converted");
  }
  require(tensor.input < plan.inputs.size(), "a tensor is in no file");
  const PlannedInput& input = plan.inputs[tensor.input];
  require(tensor.layer() != nullptr || is_inside(input, tensor.begin, planned.bytes_in),
          "a tensor is outside of its file");
  const std::optional<TypeReason> why = file_conversion::parse_reason(json.at("why").get<std::string>());
  require(why.has_value(), "a reason is unknown");
  planned.reason = {*why, json.contains("number") ? number(json.at("number")) : 0U, json.value("detail", "")};
  planned.left = json.value("left", false);
  planned.source_name = json.value("source_name", "");
  planned.choice = json.value("choice", "");
  // With a scale, a tensor that keeps its type may be copied or converted.
  if (planned.converts && planned.from == target.dtype && json.contains("copy")) planned.converts = false;
  if (!planned.converts) planned.scale = 1.0;
  return tensor;
}

PlannedShard parse_shard(const Json& json, const CheckpointPlan& plan) {
  PlannedShard shard;
  shard.name = file_name(json.at("file"));
  shard.bytes = number(json.at("bytes"));
  for (const auto& [key, value] : json.at("metadata").items()) {
    shard.metadata.emplace_back(key, value.get<std::string>());
  }
  std::vector<formats::TensorInfo> targets;
  for (const Json& tensor : json.at("tensors")) {
    shard.tensors.push_back(parse_tensor(tensor, plan));
    targets.push_back(shard.tensors.back().planned.target);
  }
  const Result<void> holds = formats::safetensors_format.check(targets);
  require(holds.ok(), "a file cannot hold its tensors");
  shard.fingerprint = json.at("fingerprint").get<std::string>();
  return shard;
}

PlannedModel parse_model(const Json& json, const CheckpointPlan& plan) {
  PlannedModel model;
  for (const Json& shard : json.at("shards")) {
    model.shards.push_back(number(shard));
    require(model.shards.back() < plan.shards.size(), "a model has no such shard");
  }
  if (json.contains("index")) model.index = file_name(json.at("index"));
  if (json.contains("source_index")) {
    model.source_index = file_name(json.at("source_index"));
    model.source_index_sha256 = json.at("source_index_sha256").get<std::string>();
  }
  model.new_map = json.at("new_map").get<bool>();
  return model;
}

file_conversion::MadeChoice parse_choice(const Json& json) {
  file_conversion::MadeChoice choice{.basis = json.at("basis").get<std::string>()};
  for (const Json& weight : json.at("weights")) {
    choice.weights.push_back({.name = weight.at(0).get<std::string>(),
                              .scheme = weight.at(1).get<std::string>(),
                              .recipe = weight.at(2).get<std::string>(),
                              .choice = weight.at(3).get<std::string>()});
  }
  return choice;
}

CheckpointPlan parse_document(const Json& json) {
  CheckpointPlan plan;
  require(json.at("format") == "tensorcast plan", "it is not a plan of tensorcast");
  require(json.at("version") == plan_version, "it was written by another version of tensorcast");
  plan.source = json.at("source").get<std::string>();
  require(!is_local(plan.source) || plan.source.starts_with('/'), "its source is not an absolute path");
  require(plan.source.find('\0') == std::string::npos, "its source contains a zero byte");
  plan.overwrite = json.at("overwrite").get<bool>();
  plan.settings = parse_settings(json.at("settings"));
  for (const Json& input : json.at("inputs")) plan.inputs.push_back(parse_input(input));
  std::set<std::string> names;
  for (const Json& shard : json.at("shards")) {
    plan.shards.push_back(parse_shard(shard, plan));
    const std::string fingerprint = plan.shards.back().fingerprint;
    set_fingerprint(plan, plan.shards.back());
    require(fingerprint == plan.shards.back().fingerprint, "a fingerprint does not fit");
    require(names.insert(plan.shards.back().name).second, "two shards have one name");
  }
  for (const Json& model : json.at("models")) plan.models.push_back(parse_model(model, plan));
  for (const Json& config : json.at("configs")) {
    PlannedConfig& planned = plan.configs.emplace_back();
    planned.name = file_name(config.at("file"));
    if (config.contains("dtype")) planned.dtype = parse_type(config.at("dtype"));
    planned.unquantized = config.value("unquantized", false);
    if (config.contains("decoded")) planned.decoded = config.at("decoded").get<std::vector<std::string>>();
    if (config.contains("renamed")) planned.renamed = config.at("renamed").get<file_conversion::NewEntries>();
    if (config.contains("section")) planned.section = config.at("section").dump();
  }
  for (const Json& file : json.at("texts")) {
    plan.texts.push_back({.name = file_name(file.at("file")), .text = file.at("text").get<std::string>()});
  }
  for (const Json& file : json.at("copies")) {
    plan.copies.push_back({.name = file_name(file.at("file")), .bytes = number(file.at("bytes"))});
  }
  for (const Json& folder : json.at("empty_folders")) plan.empty_folders.push_back(file_name(folder));
  for (const Json& choice : json.value("choices", Json::array())) plan.choices.push_back(parse_choice(choice));
  return plan;
}

template <class Items, class Append>
void append_list(std::string& text, const char* key, const Items& items, Append append) {
  text += fmt::format(",\n \"{}\": [", key);
  const char* comma = "";
  for (const auto& item : items) {
    text += fmt::format("{}\n  ", comma);
    append(item);
    comma = ",";
  }
  text += "]";
}

}  // namespace

std::string input_text(const PlannedInput& input) { return input_json(input).dump(); }

void set_fingerprint(const CheckpointPlan& plan, PlannedShard& shard) {
  ConversionSettings settings = plan.settings;
  settings.report_casts_only = false;  // changes no byte of the shard
  std::string text = fmt::format("{} {}\n{}\n", plan_version, version(), settings_json(settings).dump());
  std::set<std::size_t> inputs;
  for (const ShardTensor& tensor : shard.tensors) {
    inputs.insert(tensor.input);
    for (const DecodedLayer* layer : tensor.layers()) {
      for (const LayerPart& part : layer->parts) inputs.insert(part.input);
    }
  }
  for (const std::size_t input : inputs) text += fmt::format("{} {}\n", input, input_text(plan.inputs[input]));
  append_shard(text, shard, plan.settings);
  shard.fingerprint = io::sha256_of(text);
}

std::string plan_text(const CheckpointPlan& plan) {
  std::string text = fmt::format(
      "{{\n \"format\": \"tensorcast plan\",\n \"version\": {},\n \"source\": {},\n \"overwrite\": {},\n \"settings\": "
      "{}",
      plan_version, json_quoted(plan.source), plan.overwrite, settings_json(plan.settings).dump());
  append_list(text, "inputs", plan.inputs, [&](const PlannedInput& input) { text += input_text(input); });
  append_list(text, "shards", plan.shards, [&](const PlannedShard& shard) {
    append_shard(text, shard, plan.settings);
    text += fmt::format(",\n   \"fingerprint\": \"{}\"}}", shard.fingerprint);
  });
  append_list(text, "models", plan.models, [&](const PlannedModel& model) {
    OrderedJson json = {{"shards", model.shards}, {"new_map", model.new_map}};
    if (!model.index.empty()) json["index"] = model.index;
    if (!model.source_index.empty()) {
      json["source_index"] = model.source_index;
      json["source_index_sha256"] = model.source_index_sha256;
    }
    text += json.dump();
  });
  append_list(text, "configs", plan.configs, [&](const PlannedConfig& config) {
    OrderedJson json = {{"file", config.name}};
    if (config.dtype != DType::undefined) json["dtype"] = name(config.dtype);
    if (config.unquantized) json["unquantized"] = true;
    if (!config.decoded.empty()) json["decoded"] = config.decoded;
    if (!config.renamed.empty()) json["renamed"] = config.renamed;
    if (!config.section.empty()) json["section"] = Json::parse(config.section);
    text += json.dump();
  });
  append_list(text, "texts", plan.texts, [&](const PlannedText& file) {
    text += OrderedJson{{"file", file.name}, {"text", file.text}}.dump();
  });
  append_list(text, "copies", plan.copies, [&](const ListedFile& file) {
    text += OrderedJson{{"file", file.name}, {"bytes", file.bytes}}.dump();
  });
  append_list(text, "empty_folders", plan.empty_folders,
              [&](const std::string& folder) { text += json_quoted(folder); });
  if (plan.choices.empty()) return text + "\n}\n";
  append_list(text, "choices", plan.choices, [&](const file_conversion::MadeChoice& choice) {
    OrderedJson weights = OrderedJson::array();
    for (const auto& weight : choice.weights) {
      weights.push_back({weight.name, weight.scheme, weight.recipe, weight.choice});
    }
    text += OrderedJson{{"basis", choice.basis}, {"weights", std::move(weights)}}.dump();
  });
  return text + "\n}\n";
}

Result<CheckpointPlan> parse_plan(const std::string& text, const std::string& path) {
  try {
    return parse_document(Json::parse(text));
  } catch (const Json::exception&) {
    return damaged(path, "it is not JSON with the fields of a plan");
  } catch (const Damage& damage) {
    return damaged(path, damage.why);
  }
}

}  // namespace tensorcast::checkpoint
