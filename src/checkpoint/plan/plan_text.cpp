// SPDX-License-Identifier: Apache-2.0
// plan.json: the plan as text, and back from text that may be malicious.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/source/json_tree.hpp"
#include "checkpoint/store/file_name.hpp"
#include "convert/plan/conversion_json.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "io/sha256.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast::checkpoint {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int plan_version = 6;

OrderedJson input_json(const SourceFile& input) {
  return {{"file", input.name},
          {"bytes", input.bytes},
          {"version", input.version},
          {"header_sha256", input.header_sha256},
          {"data_begin", input.data_begin}};
}

OrderedJson tensor_json(const ShardTensor& tensor) {
  const file_conversion::PlannedTensor& planned = tensor.planned;
  OrderedJson json = {
      {"name", planned.target.name}, {"input", tensor.input}, {"begin", tensor.begin}, {"shape", planned.target.shape}};
  if (!planned.source_name.empty()) json["source_name"] = planned.source_name;
  if (planned.target.foreign_dtype.empty()) {
    json["from"] = name(planned.from);
    json["to"] = name(planned.target.dtype);
  } else {
    json["type"] = planned.target.foreign_dtype;
  }
  if (planned.scale() != 1.0) json["scale"] = planned.scale();
  json["why"] = name(planned.reason.why);
  if (planned.reason.number != 0) json["number"] = planned.reason.number;
  if (!planned.reason.detail.empty()) json["detail"] = planned.reason.detail;
  if (planned.left) json["left"] = true;
  return json;
}

OrderedJson item_json(const ShardItem& item) {
  if (const auto* plain = std::get_if<std::shared_ptr<const ShardTensor>>(&item)) return tensor_json(**plain);
  const auto& of_layer = std::get<LayerTensors>(item);
  OrderedJson json = {{"layer", of_layer.layer}};
  if (!of_layer.tensors.empty()) json["tensors"] = of_layer.tensors;
  return json;
}

// In pairs, as their order is that of the file.
std::string metadata_text(const formats::Metadata& metadata) { return OrderedJson(metadata).dump(); }

// Writes one tensor or layer a line: the text of a large model stays readable, and its memory small.
void append_shard(std::string& text, const PlannedShard& shard) {
  text += fmt::format("{{\n   \"file\": {},\n   \"bytes\": {},\n   \"metadata\": {},\n   \"tensors\": [",
                      json_quoted(shard.name), shard.bytes, metadata_text(shard.metadata));
  const char* comma = "";
  for (const ShardItem& item : shard.items) {
    text += fmt::format("{}\n    {}", comma, item_json(item).dump());
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

SourceFile parse_input(const Json& json) {
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

bool is_inside(const SourceFile& input, std::uint64_t begin, std::uint64_t bytes) {
  return begin <= input.bytes && bytes <= input.bytes - begin;
}

PlannedLayer parse_layer(const Json& json, const CheckpointPlan& plan, std::size_t count) {
  PlannedLayer layer;
  require(read_layer_row(json, layer), "a layer has a value that no plan has");
  require(layer.rule < plan.table.rules.size(), "a layer has no such rule");
  require(layer.parts.size() == plan.table.rules[layer.rule].parts.size(), "a layer has other parts than its rule");
  for (const std::size_t sibling : layer.siblings) require(sibling < count, "a layer has no such sibling");
  return layer;
}

// What is read of each layer is in the files.
void require_inside(const CheckpointPlan& plan) {
  for (const PlannedLayer& layer : plan.table.layers) {
    for (const LayerPart& part : source_of(plan.table, layer).parts) {
      require(part.input < plan.inputs.size(), "a part of a layer is in no file");
      require(is_inside(plan.inputs[part.input], part.begin, part.info.bytes),
              "a part of a layer is outside of its file");
    }
  }
}

void parse_table(const Json& json, CheckpointPlan& plan) {
  for (const Json& rule : json.at("rules")) {
    require(read_rule(rule, plan.table.rules.emplace_back()), "a rule has a value that no plan has");
  }
  const Json& layers = json.at("layers");
  for (const Json& layer : layers) plan.table.layers.push_back(parse_layer(layer, plan, layers.size()));
  require_inside(plan);
}

ShardTensor parse_tensor(const Json& json, const CheckpointPlan& plan) {
  ShardTensor tensor;
  file_conversion::PlannedTensor& planned = tensor.planned;
  formats::TensorInfo& target = planned.target;
  target.name = json.at("name").get<std::string>();
  tensor.input = number(json.at("input"));
  tensor.begin = number(json.at("begin"));
  for (const Json& size : json.at("shape")) target.shape.push_back(static_cast<std::int64_t>(number(size)));
  const Result<std::size_t> count = element_count(target.shape);
  require(count.ok(), "a shape is too large");
  target.count = *count;
  if (json.contains("type")) {
    const auto* entry = formats::safetensors::find_dtype(json.at("type").get<std::string>());
    require(entry != nullptr && entry->dtype == DType::undefined, "a type is unknown");
    target.foreign_dtype = entry->spelling;
    require(target.count <= SIZE_MAX / entry->bits, "a shape is too large");
    target.bytes = planned.bytes_in = target.count * (entry->bits / 8);
  } else {
    planned.from = parse_type(json.at("from"));
    target.dtype = parse_type(json.at("to"));
    planned.bytes_in = storage_bytes(planned.from, target.count);
    target.bytes = storage_bytes(target.dtype, target.count);
    require(planned.bytes_in != SIZE_MAX && target.bytes != SIZE_MAX, "a shape is too large");
    const double scale = json.value("scale", 1.0);
    require(std::isfinite(scale), "a scale is not finite");
    if (planned.from != target.dtype || scale != 1.0) planned.fate = file_conversion::Converted{.scale = scale};
  }
  require(tensor.input < plan.inputs.size(), "a tensor is in no file");
  const SourceFile& input = plan.inputs[tensor.input];
  require(is_inside(input, tensor.begin, planned.bytes_in), "a tensor is outside of its file");
  const std::optional<TypeReason> why = file_conversion::parse_reason(json.at("why").get<std::string>());
  require(why.has_value(), "a reason is unknown");
  planned.reason = {*why, json.contains("number") ? number(json.at("number")) : 0U, json.value("detail", "")};
  planned.left = json.value("left", false);
  planned.source_name = json.value("source_name", "");
  return tensor;
}

PlannedShard parse_shard(const Json& json, const CheckpointPlan& plan) {
  PlannedShard shard;
  shard.name = file_name(json.at("file"));
  shard.bytes = number(json.at("bytes"));
  shard.metadata = json.at("metadata").get<formats::Metadata>();
  for (const Json& entry : json.at("tensors")) {
    if (!entry.contains("layer")) {
      shard.items.emplace_back(std::make_shared<const ShardTensor>(parse_tensor(entry, plan)));
      continue;
    }
    LayerTensors of_layer{.layer = number(entry.at("layer")), .tensors = {}};
    require(of_layer.layer < plan.table.layers.size(), "a tensor is of no layer");
    if (entry.contains("tensors")) of_layer.tensors = entry.at("tensors").get<std::vector<std::size_t>>();
    shard.items.emplace_back(std::move(of_layer));
  }
  const auto laid_out = lay_out(plan.table, shard);
  if (!laid_out) throw Damage{laid_out.error().message};
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
  require(file_conversion::read_settings(json.at("settings"), plan.settings), "an option has no such value");
  for (const Json& input : json.at("inputs")) plan.inputs.push_back(parse_input(input));
  parse_table(json, plan);
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
  for (const Json& file : json.value("descriptions", Json::array())) {
    plan.descriptions.push_back({.name = file_name(file.at("file")), .sha256 = file.at("sha256").get<std::string>()});
  }
  plan.accepted = json.value("accepted", plan.accepted);
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

std::string input_text(const SourceFile& input) { return input_json(input).dump(); }

void set_fingerprint(const CheckpointPlan& plan, PlannedShard& shard) {
  ConversionSettings settings = plan.settings;
  settings.report_casts_only = false;  // changes no byte of the shard
  io::Sha256 hash;
  hash.update(fmt::format("{} {}\n{}\n{} {}\n{}\n", plan_version, version(),
                          file_conversion::settings_json(settings).dump(), json_quoted(shard.name), shard.bytes,
                          metadata_text(shard.metadata)));
  std::set<std::size_t> inputs;
  std::map<std::size_t, std::size_t> rules;  // in the order in which the shard needs them
  // Other shards of the plan change nothing of a row, and nor do the places of rules and layers.
  const auto add = [&](std::size_t index, bool is_sibling) {
    PlannedLayer layer = plan.table.layers[index];
    for (const PartPlace& part : layer.parts) inputs.insert(part.input);
    const auto [rule, is_new] = rules.emplace(layer.rule, rules.size());
    if (is_new) hash.update(rule_json(plan.table.rules[layer.rule]).dump());
    layer.rule = rule->second;
    layer.siblings.clear();
    hash.update(fmt::format("\n{}{}", is_sibling ? "beside " : "", layer_row_json(layer).dump()));
  };
  for (const ShardItem& item : shard.items) {
    if (const auto* plain = std::get_if<std::shared_ptr<const ShardTensor>>(&item)) {
      inputs.insert((*plain)->input);
      hash.update("\n" + tensor_json(**plain).dump());
      continue;
    }
    const auto& of_layer = std::get<LayerTensors>(item);
    add(of_layer.layer, false);
    for (const std::size_t sibling : plan.table.layers[of_layer.layer].siblings) add(sibling, true);
    hash.update(OrderedJson(of_layer.tensors).dump());
  }
  for (const std::size_t input : inputs) hash.update(fmt::format("\n{} {}", input, input_text(plan.inputs[input])));
  shard.fingerprint = hash.digest();
}

std::string plan_text(const CheckpointPlan& plan) {
  std::string text = fmt::format(
      "{{\n \"format\": \"tensorcast plan\",\n \"version\": {},\n \"source\": {},\n \"overwrite\": {},\n \"settings\": "
      "{}",
      plan_version, json_quoted(plan.source), plan.overwrite, file_conversion::settings_json(plan.settings).dump());
  append_list(text, "inputs", plan.inputs, [&](const SourceFile& input) { text += input_text(input); });
  append_list(text, "rules", plan.table.rules, [&](const LayerRule& rule) { text += rule_json(rule).dump(); });
  append_list(text, "layers", plan.table.layers,
              [&](const PlannedLayer& layer) { text += layer_row_json(layer).dump(); });
  append_list(text, "shards", plan.shards, [&](const PlannedShard& shard) {
    append_shard(text, shard);
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
  append_list(text, "texts", plan.texts, [&](const quantized::ConfigText& file) {
    text += OrderedJson{{"file", file.name}, {"text", file.text}}.dump();
  });
  append_list(text, "copies", plan.copies, [&](const ListedFile& file) {
    text += OrderedJson{{"file", file.name}, {"bytes", file.bytes}}.dump();
  });
  append_list(text, "empty_folders", plan.empty_folders,
              [&](const std::string& folder) { text += json_quoted(folder); });
  if (!plan.descriptions.empty()) {
    append_list(text, "descriptions", plan.descriptions, [&](const DigestedFile& file) {
      text += OrderedJson{{"file", file.name}, {"sha256", file.sha256}}.dump();
    });
  }
  if (!plan.accepted.empty()) {
    append_list(text, "accepted", plan.accepted, [&](const std::string& word) { text += json_quoted(word); });
  }
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
