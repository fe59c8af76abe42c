// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare/statement.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "checkpoint/store/file_name.hpp"
#include "convert/plan/conversion_json.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/written_files.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast::checkpoint {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* statement_type = "https://in-toto.io/Statement/v1";
constexpr const char* predicate_type = "urn:tensorcast:attestation:conversion:v1";
constexpr int max_statement_depth = 16;
constexpr std::size_t max_statement_string_bytes = std::size_t{1} << 16;

// Thrown and caught in this file only.
struct NotAStatement {
  std::string why;
};

void demand(bool holds, const char* why) {
  if (!holds) throw NotAStatement{why};
}

OrderedJson files_json(const std::vector<DigestedFile>& files) {
  OrderedJson json = OrderedJson::array();
  for (const DigestedFile& file : files) json.push_back({{"name", file.name}, {"digest", {{"sha256", file.sha256}}}});
  return json;
}

// "the tool whose bytes it equals": of "nvfp4:modelopt", with the rules for its scales and codes.
OrderedJson recipe_json(const std::string& name) {
  const std::size_t colon = name.find(':');
  OrderedJson json = {{"name", name}};
  const QuantizeRecipe* const recipe =
      colon == std::string::npos ? nullptr : find_quantize_recipe(name.substr(0, colon), name.substr(colon + 1));
  if (recipe == nullptr) return json;
  json["equals"] = recipe->recipe;
  json["scale"] = recipe->scale;
  json["element"] = recipe->element;
  return json;
}

// Parses JSON that may be malicious: no key twice, no deep nesting, no long strings.
Json parse_bounded(const std::string& text) {
  demand(text.size() <= max_statement_bytes, "it is too large");
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    demand(depth <= max_statement_depth, "it is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (parsed.is_string()) {
      demand(parsed.get_ref<const std::string&>().size() <= max_statement_string_bytes, "a text is too long");
    }
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw NotAStatement{fmt::format("it has the key \"{}\" twice", parsed.get<std::string>())};
    }
    return true;
  };
  return Json::parse(text, check);
}

const Json& member(const Json& json, const char* name) {
  demand(json.is_object(), "something is not an object that should be one");
  const auto found = json.find(name);
  if (found == json.end()) throw NotAStatement{fmt::format("it lacks \"{}\"", name)};
  return *found;
}

std::string text_of(const Json& json, const char* name) {
  const Json& value = member(json, name);
  if (!value.is_string()) throw NotAStatement{fmt::format("\"{}\" is not a string", name)};
  return value.get<std::string>();
}

DigestedFile parse_file(const Json& json) {
  DigestedFile file{.name = text_of(json, "name"), .sha256 = text_of(member(json, "digest"), "sha256")};
  if (const Result<void> checked = check_file_name(file.name, ""); !checked) {
    throw NotAStatement{checked.error().message};
  }
  demand(io::is_sha256(file.sha256), "a digest is not 64 hexadecimal digits");
  return file;
}

std::vector<DigestedFile> parse_files(const Json& json, const char* name) {
  const Json& list = member(json, name);
  if (!list.is_array() || list.empty()) throw NotAStatement{fmt::format("\"{}\" is not a list of files", name)};
  std::vector<DigestedFile> files;
  std::set<std::string> names;
  for (const Json& each : list) {
    files.push_back(parse_file(each));
    if (!names.insert(files.back().name).second) {
      throw NotAStatement{fmt::format("\"{}\" names \"{}\" twice", name, files.back().name)};
    }
  }
  return files;
}

Statement parse_all(const std::string& text) {
  const Json json = parse_bounded(text);
  demand(json.is_object(), "it is not an object");
  demand(!json.contains("payloadType"), "it is signed: give verify the payload, which the signer's tool extracts");
  demand(text_of(json, "_type") == statement_type, "it is not an in-toto Statement v1");
  demand(text_of(json, "predicateType") == predicate_type, "its predicate is not a conversion of tensorcast");
  Statement statement;
  statement.outputs = parse_files(json, "subject");
  const Json& predicate = member(json, "predicate");
  const Json& tool = member(predicate, "tool");
  demand(text_of(tool, "name") == "tensorcast", "it is about another tool");
  statement.version = text_of(tool, "version");
  statement.inputs = parse_files(predicate, "resolvedDependencies");
  if (predicate.contains("importance")) statement.importance = parse_file(predicate.at("importance"));
  const Json& options = member(predicate, "options");
  demand(!options.contains("importance"), "its options name a file to read");
  if (const Result<void> read = file_conversion::read_conversion(options, statement.request); !read) {
    throw NotAStatement{read.error().message};
  }
  if (predicate.contains("inputFormat")) statement.request.input_format = text_of(predicate, "inputFormat");
  if (predicate.contains("outputFormat")) statement.request.output_format = text_of(predicate, "outputFormat");
  return statement;
}

}  // namespace

std::string statement_text(const Statement& statement) {
  OrderedJson predicate = {{"tool", {{"name", "tensorcast"}, {"version", statement.version}}}};
  OrderedJson options = file_conversion::conversion_json(statement.request);
  options.erase("importance");  // a path of one machine; the file has a digest below
  predicate["options"] = std::move(options);
  const ConvertRequest& request = statement.request;
  if (request.options.rounding == Rounding::stochastic) predicate["seed"] = request.options.seed;
  if (!statement.recipes.empty()) {
    predicate["recipes"] = OrderedJson::array();
    for (const std::string& recipe : statement.recipes) predicate["recipes"].push_back(recipe_json(recipe));
    predicate["layouts"] = statement.layouts;
  }
  if (!request.input_format.empty()) predicate["inputFormat"] = request.input_format;
  if (!request.output_format.empty()) predicate["outputFormat"] = request.output_format;
  if (statement.importance) predicate["importance"] = files_json({*statement.importance})[0];
  predicate["resolvedDependencies"] = files_json(statement.inputs);
  const OrderedJson json = {{"_type", statement_type},
                            {"subject", files_json(statement.outputs)},
                            {"predicateType", predicate_type},
                            {"predicate", std::move(predicate)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Statement> parse_statement(const std::string& text, const std::string& path) {
  const auto fail = [&](std::string why) {
    return in_file(path, parse_error("the file is not a statement about a conversion: " + std::move(why)));
  };
  try {
    return parse_all(text);
  } catch (const Json::exception&) {
    return fail("it is not JSON");
  } catch (const NotAStatement& error) {
    return fail(error.why);
  }
}

}  // namespace tensorcast::checkpoint
