// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::convert(): reads, plans, surveys the numbers, writes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "io/output_file.hpp"
#include "models/onnx/edit/inline_functions.hpp"
#include "models/onnx/edit/model_files.hpp"
#include "models/onnx/edit/opset_upgrade.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/precision/function_copies.hpp"
#include "models/onnx/precision/node_selection.hpp"
#include "models/onnx/precision/number_survey.hpp"
#include "models/onnx/precision/precision_plan.hpp"
#include "models/onnx/precision/runtime_overlay.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::Clamp;
using ::tensorcast::onnx::ConvertOutcome;
using ::tensorcast::onnx::ConvertRequest;
using ::tensorcast::onnx::Functions;
using ::tensorcast::onnx::Masks;
using ::tensorcast::onnx::OnOverflow;

constexpr DType converted_types[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16};

bool is_converted_type(DType dtype) { return contains(converted_types, dtype); }

// What a request asks for, in full.
struct Asked {
  ConvertRequest request;
  std::optional<WeightRecipe> weights = {};
};

// Replaces `clamp` by what it stands for, and finds the type that a scheme of weights gives.
Result<Asked> settled(ConvertRequest request) {
  const auto limit = [&](double min_positive, double max_finite) {
    if (request.min_positive == 0.0) request.min_positive = min_positive;
    if (request.max_finite == 0.0) request.max_finite = max_finite;
  };
  if (request.clamp == Clamp::finite) request.on_overflow = OnOverflow::clamp;
  if (request.clamp == Clamp::onnxconverter_common) limit(1e-7, 1e4);
  if (request.clamp == Clamp::onnxruntime) limit(5.96e-8, 65504.0);
  if (request.weights_only && request.to == DType::int8 && request.weights_scheme.empty()) {
    request.weights_scheme = "int8";
  }
  if (request.weights_scheme.empty()) {
    if (request.group_size == 0 && request.symmetric) return Asked{.request = std::move(request)};
    return invalid("only weights in int4 have groups", "write --weights-only int4-group");
  }
  WeightRecipe weights = TRY(parse_weight_recipe(request.weights_scheme, request.group_size, request.symmetric));
  const DType codes = weights.scheme->codes;
  if (request.to != DType::undefined && request.to != codes) {
    return invalid(fmt::format("{} stores {}, not {}", weights.scheme->word, name(codes), name(request.to)));
  }
  if (request.min_positive > 0.0 || request.max_finite > 0.0) {
    return invalid("weights that get scales have no limits of numbers");
  }
  request.to = codes;
  request.weights_only = true;
  return Asked{.request = std::move(request), .weights = std::move(weights)};
}

// Returns the first opset that can hold what a request asks for.
std::int64_t first_opset(const Asked& asked) {
  return asked.weights ? asked.weights->scheme->first_opset : since_opset(asked.request.to);
}

Result<void> check_target(const Asked& asked) {
  const ConvertRequest& request = asked.request;
  const bool is_target = is_converted_type(request.to) || asked.weights ||
                         (request.weights_only && is_onnx(request.to) && family(request.to) == Family::floating);
  if (is_target) return {};
  return invalid(fmt::format("a model cannot become {}", name(request.to)),
                 "targets are float16, bfloat16, float32 and float64; with --weights-only float8 types and int8, too");
}

// Checks the parts of a request that name nodes and values, as far as no model decides.
Result<void> check_entries(const ConvertRequest& request) {
  TRY(check_selectors(request.keep));
  TRY(check_selectors(request.only));
  TRY(parse_operator_types(request.operator_types));
  for (const auto& [edge, dtype] : request.io_types) {
    if (is_converted_type(dtype)) continue;
    return invalid(fmt::format("\"{}\" cannot become {}", shown(edge), name(dtype)),
                   "inputs and outputs can be float16, bfloat16, float32 and float64");
  }
  return {};
}

Result<PrecisionPlan::Settings> settings_of(const Asked& asked) {
  const ConvertRequest& request = asked.request;
  constexpr std::uint64_t largest_alignment = std::uint64_t{1} << 30;
  if (!std::has_single_bit(request.external_alignment) || request.external_alignment > largest_alignment) {
    return invalid(fmt::format("`external_alignment` is a power of two up to {}, not {}", largest_alignment,
                               request.external_alignment));
  }
  TRY(check_target(asked));
  TRY(check_entries(request));
  if (!runtime_has_type(request.runtime, request.to)) {
    return invalid(fmt::format("the runtime computes nothing in {}", name(request.to)),
                   "TensorRT and OpenVINO cast it to float32");
  }
  if (!(request.min_positive >= 0.0) || !(request.max_finite >= 0.0)) {
    return invalid("the limits of numbers must be 0 or more");
  }
  if (request.max_finite > 0.0 && request.min_positive > request.max_finite) {
    return invalid(
        fmt::format("the smallest number, {}, is above the largest, {}", request.min_positive, request.max_finite));
  }
  PrecisionPlan::Settings settings{.to = request.to, .request = &request};
  settings.quantizes = asked.weights.has_value();
  for (const DType from : request.from) {
    if (settings.quantizes && from == DType::float64) return invalid("float64 weights get no scales");
    if (!is_converted_type(from)) {
      return invalid(fmt::format("{} cannot be converted from", name(from)),
                     "sources are float64, float32, bfloat16 and float16");
    }
    settings.from |= std::uint64_t{1} << static_cast<int>(from);
  }
  if (request.from.empty()) {
    for (const DType from : converted_types) {
      if (settings.quantizes && from == DType::float64) continue;
      // A weight is stored in a smaller type, never in a larger one.
      if (request.weights_only && bit_width(from) <= bit_width(request.to)) continue;
      settings.from |= std::uint64_t{1} << static_cast<int>(from);
    }
  }
  return settings;
}

// Resolves the parts of a request that name nodes and values of the model.
Result<void> take_selection(const Model& model, const ConvertRequest& request, PrecisionPlan::Settings& settings) {
  std::vector<bool> kept = TRY(select_nodes(model, request.keep, "keep"));
  const std::vector<bool> only = TRY(select_nodes(model, request.only, "only"));
  settings.blocked = std::move(kept);
  if (!request.only.empty()) {
    each_graph(model, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        // A Constant has the type that its consumers need.
        if (!only[node.id] && node.op_type != "Constant") settings.blocked[node.id] = true;
      }
    });
  }
  settings.operators = TRY(operator_types_of(model, request.operator_types));
  for (const auto& [edge, dtype] : request.io_types) {
    bool known = false;
    for (const auto* edges : {&model.graph->inputs, &model.graph->outputs}) {
      for (const Declaration& declared : *edges) {
        if (declared.name != edge) continue;
        known = true;
        const ValueType& type = model.values[declared.value].type;
        if (!type.is_tensor() || !is_converted_type(type.element)) {
          return invalid(fmt::format("\"{}\" is no tensor of floating-point numbers", shown(edge)));
        }
      }
    }
    if (!known) return invalid(fmt::format("the model has no input or output \"{}\"", shown(edge)));
    settings.io_elements[edge] = dtype;
  }
  return {};
}

// Refuses names that match nothing.
Result<void> check_names(const Model& model, const PrecisionPlan& plan, const ConvertRequest& request) {
  std::set<std::string, std::less<>> edges;
  for (const auto* declarations : {&model.graph->inputs, &model.graph->outputs}) {
    for (const Declaration& edge : *declarations) edges.insert(edge.name);
  }
  std::set<std::string, std::less<>> operators, nodes;
  each_graph(plan.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      operators.insert(node.op_type);
      nodes.insert(shown_name(node));
    }
  });
  const auto check = [](const std::vector<std::string>& names, const auto& known,
                        std::string_view what) -> Result<void> {
    for (const std::string& name : names) {
      if (!known.contains(name)) return invalid(fmt::format("the model has no {} \"{}\"", what, shown(name)));
    }
    return {};
  };
  TRY(check(request.keep_io_names, edges, "input or output"));
  TRY(check(request.keep_op_types, operators, "operator"));
  TRY(check(request.explain, nodes, "node"));
  return check(request.keep_nodes, model.node_names, "node");
}

bool has_source(const Model& model, const PrecisionPlan::Settings& settings) {
  return std::ranges::any_of(model.values, [&](const Value& value) { return settings.converts(value.type); });
}

Result<void> check_opset(const Model& model, const Asked& asked) {
  const std::int64_t opset = model.graph->opset("");
  const std::int64_t first = first_opset(asked);
  if (opset <= 0 || opset >= first) return {};
  const std::string what = asked.weights ? fmt::format("DequantizeLinear for {}", asked.weights->scheme->word)
                                         : std::string(name(asked.request.to));
  return unsupported(fmt::format("{} came with opset {}, but the model has opset {}", what, first, opset),
                     "--opset auto raises the model's where no node changes by that; in Python, "
                     "tensorcast.onnx.convert() rewrites the "
                     "others, too");
}

Result<void> raise_opset(Model& model, const Asked& asked, const PrecisionPlan::Settings& settings) {
  const ConvertRequest& request = *settings.request;
  if (request.opset == ::tensorcast::onnx::keep_opset) return {};
  if (request.opset != ::tensorcast::onnx::auto_opset) return upgrade_opset(model, request.opset);
  const std::int64_t opset = model.graph->opset("");
  if (opset <= 0 || opset >= first_opset(asked)) return {};
  infer_types(model);
  return has_source(model, settings) ? upgrade_opset(model, first_opset(asked)) : Result<void>();
}

// Gives the model its old opset back if --opset auto raised it and nothing else changes. Returns whether it did.
bool take_back_opset(Model& model, const PrecisionPlan& plan, const CastElision& elision,
                     const ModelWriter::Counts& counts) {
  if (plan.settings().request->opset != ::tensorcast::onnx::auto_opset) return false;
  if (counts.casts_added + counts.initializers_converted + elision.removed_casts() != 0) return false;
  for (ValueId id = 0; id < model.values.size(); ++id) {
    if (plan.produced(id) != model.values[id].type.element) return false;
  }
  return restore_opset(model);
}

TensorPlacement placement_of(const ConvertRequest& request) {
  using ::tensorcast::onnx::ExternalData;
  TensorPlacement placement{.alignment = request.external_alignment};
  if (request.external_data == ExternalData::inside) placement.all_inside = true;
  if (request.external_data == ExternalData::one || request.external_data == ExternalData::per_tensor) {
    placement.inline_limit = request.external_threshold == 0 ? 0 : request.external_threshold - 1;
    placement.only_larger = true;
    placement.per_tensor = request.external_data == ExternalData::per_tensor;
  }
  return placement;
}

// Returns where the new model is made. A model that is only checked may have no output path.
Result<std::string> place_of(const ConvertRequest& request) {
  if (!request.output.empty() || !request.check) return request.output;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed)
    return Error{
        .code = ErrorCode::io, .message = "there is no folder for temporary files", .system_error = failed.value()};
  return (folder / "model.onnx").string();
}

// Returns the type of the first floating output, or input.
DType precision_of(const PrecisionPlan& plan, const Node& node) {
  const auto is_floating = [](DType dtype) { return is_onnx(dtype) && family(dtype) == Family::floating; };
  for (const ValueId id : node.outputs) {
    if (id != no_value && is_floating(plan.produced(id))) return plan.produced(id);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != no_value && is_floating(plan.taken(node, i))) return plan.taken(node, i);
  }
  return DType::undefined;
}

void describe_nodes(const PrecisionPlan& plan, const CastElision& elision, ConvertOutcome& outcome) {
  const ConvertRequest& request = *plan.settings().request;
  const std::vector<std::string> scopes = graph_scopes(plan.model());
  std::map<DType, std::size_t> by_type;
  each_graph(plan.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      outcome.nodes_converted += plan.is_converted(node) ? 1 : 0;
      outcome.casts_before += node.op_type == "Cast" && node.domain.empty() ? 1 : 0;
      const std::string& named = shown_name(node);
      if (!named.empty() && contains(request.explain, named)) {
        outcome.explained.push_back(plan.explain(node));
        outcome.explained.back().scope = scopes[graph.id];
      }
      if (elision.removal(node) != Removal::none) continue;
      if (const DType dtype = precision_of(plan, node); dtype != DType::undefined) ++by_type[dtype];
    }
  });
  outcome.nodes_by_type.assign(by_type.begin(), by_type.end());
  outcome.casts_after = outcome.casts_before + outcome.casts_added - outcome.casts_removed;
  for (ValueId id = 0; id < plan.model().values.size(); ++id) {
    outcome.values_changed += plan.produced(id) != plan.model().values[id].type.element ? 1 : 0;
  }
}

void describe_initializers(const PrecisionPlan& plan, const Asked& asked,
                           const std::vector<NumberSurvey::Finding>& findings, ConvertOutcome& outcome) {
  const DType to = plan.settings().to;
  const QuantizeRecipe* recipe =
      asked.weights ? find_quantize_recipe(asked.weights->scheme->scheme, asked.weights->recipe) : nullptr;
  for (const NumberSurvey::Finding& finding : findings) {
    const Value& value = plan.model().values[finding.value];
    const auto& quantization = plan.quantization(finding.value);
    if (plan.produced(finding.value) != to && !plan.has_copy(finding.value)) continue;
    outcome.initializers.push_back({.name = value.name,
                                    .from = known(value.type.element),
                                    .to = to,
                                    .count = finding.numbers.count,
                                    .overflowed = finding.numbers.overflowing,
                                    .underflowed = finding.numbers.vanishing,
                                    .clamped = finding.has_limit || plan.fit(finding.value) == Fit::clamp,
                                    .scheme = recipe == nullptr ? std::string_view() : recipe->scheme,
                                    .recipe = recipe == nullptr ? std::string_view() : recipe->recipe,
                                    .snr_db = quantization == nullptr ? std::nullopt : quantization->snr_db()});
  }
}

Result<ConvertOutcome> convert(const ConvertRequest& given_request) {
  const Asked asked = TRY(settled(given_request));
  const ConvertRequest& request = asked.request;
  PrecisionPlan::Settings settings = TRY(settings_of(asked));
  const io::InputFile given = TRY(io::InputFile::open(request.input));
  if (!request.dry_run) {  // a file that is in the way is an error before the work
    TRY(io::OutputFile::check_place(request.output, request.overwrite));
  }
  std::unique_ptr<Model> read = TRY(read_model(given));
  const io::InputFile* file = &given;
  std::optional<io::InputFile> without_calls;
  std::size_t inlined_calls = 0;
  if (request.functions == Functions::inlined) {
    InlinedModel inlined = TRY(inline_functions(given, *read));
    inlined_calls = inlined.calls;
    if (inlined_calls > 0) {
      file = &without_calls.emplace(std::move(inlined.rope).as_file(given));
      read = TRY(read_model(*file));
    }
  }
  Model& model = *read;
  if (model.has_training) {
    return unsupported("the model has training_info, whose graphs train its initializers in their present types",
                       "a copy without training_info can be converted");
  }
  const std::int64_t old_opset = model.graph->opset("");
  TRY(raise_opset(model, asked, settings));
  const std::size_t nodes = model.node_count;  // without copies of functions
  TRY(separate_signatures(*file, model, settings));

  TRY(take_selection(model, request, settings));
  PrecisionPlan plan(model, settings);
  TRY(check_names(model, plan, request));
  if (has_source(model, settings)) {
    TRY(check_opset(model, asked));
  }
  NumberSurvey survey(*file, asked.weights ? &*asked.weights : nullptr, plan);
  TRY(survey.run());
  plan.decide();

  const CastElision elision(plan, {.lossy = request.allow_lossy_cast_elision, .only_changed = true});
  const std::string output = TRY(place_of(request));
  const Rebuild build = [&](const std::map<std::string, std::string>& names) {
    return build_model(*file, plan, elision, placement_of(request), output, names);
  };
  BuiltModel built = TRY(build({}));
  if (inlined_calls == 0 && take_back_opset(model, plan, elision, built.counts)) built = TRY(build({}));
  const ModelWriter::Counts counts = built.counts;
  if (!request.dry_run || request.check) {
    const WriteOptions options{.overwrite = request.overwrite,
                               .dry_run = request.dry_run,
                               .check = request.check,
                               .on_progress = request.on_progress};
    TRY(write_model(*file, model, std::move(built), output, options, build));
  }

  ConvertOutcome outcome{.to = request.to,
                         .opset_before = old_opset,
                         .opset_after = model.graph->opset(""),
                         .nodes = nodes,
                         .calls_inlined = inlined_calls,
                         .casts_added = counts.casts_added,
                         .casts_removed = elision.removed_casts(),
                         .initializers_converted = counts.initializers_converted,
                         .initializer_bytes_before = counts.initializer_bytes_before,
                         .initializer_bytes_after = counts.initializer_bytes_after,
                         .kept = plan.kept_nodes(),
                         .kept_weights = survey.kept()};
  describe_nodes(plan, elision, outcome);
  describe_initializers(plan, asked, survey.findings(), outcome);
  return outcome;
}

Result<::tensorcast::onnx::Needs> needs(const ConvertRequest& request) {
  using ::tensorcast::onnx::Runtime;
  const Asked asked = TRY(settled(request));
  TRY(settings_of(asked));
  ::tensorcast::onnx::Needs found{.to = asked.request.to, .opset = first_opset(asked)};
  const DType to = found.to;
  if (request.runtime == Runtime::onnxruntime_cpu && asked.weights && bit_width(to) == 4 &&
      family(to) == Family::floating) {
    found.missing_kernel = fmt::format(
        "ONNX Runtime has no kernel for DequantizeLinear of {} on a CPU: it will not run the new model", name(to));
  }
  return found;
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<ConvertOutcome> convert(const ConvertRequest& request) {
  return models::onnx::guarded_for_file(request.input, [&] { return models::onnx::convert(request); });
}

Result<Needs> needs(const ConvertRequest& request) {
  return guarded([&] { return models::onnx::needs(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
