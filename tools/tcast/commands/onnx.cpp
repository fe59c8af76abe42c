// SPDX-License-Identifier: Apache-2.0
// tcast onnx: changes the precision of ONNX models.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "commands/onnx_commands.hpp"
#include "commands/onnx_validation.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "flags/option_flags.hpp"
#include "flags/options.hpp"
#include "models/onnx/model_options.hpp"
#include "print/onnx_text.hpp"
#include "print/picture_file.hpp"
#include "print/report_json.hpp"
#include "print/result_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/onnx.hpp"

namespace tcast {
namespace {

using tensorcast::Result;
using tensorcast::onnx::ConvertOutcome;
using tensorcast::onnx::ConvertRequest;
using tensorcast::onnx::InitializerChange;
using tensorcast::onnx::NodeDecision;
using tensorcast::onnx::ValueDecision;

struct OnnxConvertArguments {
  ConvertRequest request;
  std::string io_types;  // a list, such as x,y=float32
  std::string opset = "keep";
  std::string picture;
  ValidationArguments validation;
  bool json = false;
  bool quiet = false;
};

constexpr const char* onnx_examples = R"(Examples:
  tcast onnx convert model.onnx -o model-f16.onnx --to float16
`tcast onnx convert --help` shows more. `python -m tensorcast.onnx` also has search,
which finds the nodes that must keep their type, and validate.)";

constexpr const char* onnx_convert_examples = R"(Examples:
  tcast onnx convert model.onnx -o model-f16.onnx --to float16 --keep-io-types
      inputs and outputs keep their types; a Cast stands behind or before them
  tcast onnx convert model-f16.onnx -o model-f32.onnx --to float32
      back again: no value of the model has another floating type
  tcast onnx convert model.onnx -o small.onnx --to bfloat16 --weights-only
      only initializers become bfloat16, and a Cast behind each gives back the old type
  tcast onnx convert model.onnx -o int4.onnx --weights-only int4-group
      matrices become int4 with a scale for 128 inputs each, and a DequantizeLinear behind each gives back the old type
  tcast onnx convert model.onnx -o mixed.onnx --to float16 --keep op:Softmax --keep 'glob:/head/*'
      nodes that keep their types: op:TYPE, name:NAME, glob:PATTERN, re:REGEX, domain:DOMAIN, graph:PATTERN,
      tensor:NAME, consumer-of:TENSOR, producer-of:TENSOR; --only takes the same
  tcast onnx convert model.onnx --to float16 --dry-run --explain /head/MatMul
      what would happen to the model, and why to this node
  tcast onnx convert model.onnx -o model-f16.onnx --to float16 --keep-io-types x=float32,y=float16
  tcast onnx convert old.onnx -o model-bf16.onnx --to bfloat16 --opset auto
      raises the opset of a model that is too old for bfloat16, if no node changes by that
  tcast onnx convert model.onnx -o model-f16.onnx --to float16 --validate --dims batch=1,sequence=128
      writes the new model only if ONNX's checker accepts it and its outputs in ONNX Runtime are close to the old ones
  tcast onnx convert model.onnx -o model-f16.onnx --to float16 --picture model-f16.svg
      a picture of the new model, with precisions in colour
Each value gets one type: the new one where the schemas of the operators, in the model's own opset, and the runtime
allow it. Sizes and indices that are computed as floats keep their type, as do initializers with numbers beyond the new
range, and unknown operators. A Cast stands exactly where two types meet. Everything else is copied byte for byte.
External data goes into OUT.data. Converting the result again changes nothing.)";

using nlohmann::ordered_json;

ordered_json outcome_json(const ConvertRequest& request, const ConvertOutcome& outcome) {
  ordered_json json = {{"input", request.input}, {"output", request.output}};
  json.update(result_json(outcome));
  if (request.explain.empty()) return json;
  json["explained"] = value_json(outcome.explained);
  for (ordered_json& node : json["explained"]) {
    for (ordered_json& value : node["values"]) {
      if (!value["is_input"].get<bool>()) value.erase("cast");
    }
  }
  return json;
}

std::string explanation_text(const NodeDecision& decision) {
  std::string text = fmt::format("{} \"{}\"{}\n", printable(decision.op_type), printable(decision.name),
                                 decision.scope.empty() ? "" : " in " + printable(decision.scope));
  for (const ValueDecision& value : decision.values) {
    text += fmt::format("  {} \"{}\": {}", value.is_input ? "takes" : "gives", printable(value.value),
                        type_text(value.from));
    if (value.to != value.from) text += " -> " + type_text(value.to);
    if (value.has_cast) text += ", behind a Cast";
    if (!value.reason.empty()) text += fmt::format(": {}", value.reason);
    text += "\n";
  }
  return text;
}

std::string changes_text(const ConvertOutcome& outcome, bool has_scheme) {
  const bool has_scales =
      std::ranges::any_of(outcome.initializers, [](const InitializerChange& change) { return !change.scheme.empty(); });
  if (has_scales) {
    return fmt::format("{} in {}, {} added", count_text(outcome.initializers.size(), "weight"), name(outcome.to),
                       count_text(outcome.casts_added, "node"));
  }
  if (has_scheme) return fmt::format("0 weights in {}", name(outcome.to));
  return fmt::format("{} of {} in {}, {} and {} changed, {} added", grouped(outcome.nodes_converted),
                     count_text(outcome.nodes, "node"), name(outcome.to), count_text(outcome.values_changed, "value"),
                     count_text(outcome.initializers_converted, "initializer"),
                     count_text(outcome.casts_added, "Cast"));
}

// Groups what stays by its reason, in the order of the list.
template <class Kept>
std::vector<std::pair<std::string_view, std::vector<const Kept*>>> by_reason(const std::vector<Kept>& list) {
  std::vector<std::pair<std::string_view, std::vector<const Kept*>>> reasons;
  for (const Kept& kept : list) {
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& entry) { return entry.first == kept.reason; });
    if (known == reasons.end()) {
      reasons.push_back({kept.reason, {&kept}});
    } else {
      known->second.push_back(&kept);
    }
  }
  return reasons;
}

// What a person should know of a conversion: nodes that stay, by reason, and numbers that are lost.
std::string notes_text(const ConvertOutcome& outcome) {
  std::string text;
  if (outcome.opset_after != outcome.opset_before) {
    text += fmt::format("  opset: {} -> {}\n", outcome.opset_before, outcome.opset_after);
  }
  if (outcome.calls_inlined > 0) {
    text += fmt::format("  {} of functions inlined\n", count_text(outcome.calls_inlined, "call"));
  }
  for (const auto& [reason, nodes] : by_reason(outcome.kept)) {
    if (reason == tensorcast::onnx::by_weights_only) continue;  // all nodes, as the request wants
    text += fmt::format("  {} stay{}, such as {} \"{}\": {}\n", count_text(nodes.size(), "node"),
                        nodes.size() == 1 ? "s" : "", printable(nodes.front()->op_type), printable(nodes.front()->name),
                        reason);
  }
  for (const auto& [reason, weights] : by_reason(outcome.kept_weights)) {
    text += fmt::format("  {} stay{}, such as \"{}\": {}\n", count_text(weights.size(), "weight"),
                        weights.size() == 1 ? "s" : "", printable(weights.front()->name), reason);
  }
  std::uint64_t overflowed = 0;
  std::uint64_t underflowed = 0;
  for (const InitializerChange& change : outcome.initializers) {
    overflowed += change.overflowed;
    underflowed += change.underflowed;
  }
  if (overflowed + underflowed > 0) {
    text += fmt::format("  initializers and constants: {} beyond the range, {} became zero; --json lists them\n",
                        count_text(overflowed, "number"), grouped(underflowed));
  }
  return text;
}

// What quantized weights lose: bytes, and the five of the smallest signal to noise ratio.
std::string weights_text(const ConvertOutcome& outcome, bool has_scheme) {
  constexpr std::size_t shown = 5;
  std::vector<const InitializerChange*> weights;
  for (const InitializerChange& change : outcome.initializers) {
    if (!change.scheme.empty()) weights.push_back(&change);
  }
  if (weights.empty()) {
    const bool has_none = has_scheme && outcome.kept_weights.empty();
    return has_none ? "  no product takes a constant matrix of float32, float16 or bfloat16\n" : "";
  }
  std::string text = fmt::format("  weights: {} -> {}\n", bytes_text(outcome.initializer_bytes_before),
                                 bytes_text(outcome.initializer_bytes_after));
  constexpr std::int64_t first_per_axis = 13;
  if (outcome.to == tensorcast::DType::int8 && outcome.opset_after < first_per_axis) {
    text += fmt::format("  each has one scale, as the model has opset {}; --opset 13 gives one for each channel\n",
                        outcome.opset_after);
  }
  std::erase_if(weights, [](const InitializerChange* weight) { return !weight->snr_db; });
  if (weights.empty()) return text;
  std::ranges::stable_sort(weights, {}, [](const InitializerChange* weight) { return *weight->snr_db; });
  Table table({{"  worst weights"}, {"elements", Align::right}, {"SNR", Align::right}});
  for (std::size_t i = 0; i < std::min(shown, weights.size()); ++i) {
    table.add_row({"  " + printable(weights[i]->name), grouped(weights[i]->count), decibel_text(*weights[i]->snr_db)});
  }
  return text + table.to_string();
}

int convert_onnx(const OnnxConvertArguments& arguments) {
  ConvertRequest request = arguments.request;
  const tensorcast::PathUse files[] = {{.path = request.input, .noun = "input"},
                                       {.path = request.output, .noun = "output"}};
  if (!arguments.picture.empty()) {
    const Result<void> usable = check_picture(arguments.picture, request.input, files, request.overwrite);
    if (!usable) return fail(usable.error());
  }
  std::optional<CancellableWork> cancellable;  // from the first call on; before, a signal ends the program at once
  request.on_progress = [&] {
    if (!cancellable) cancellable.emplace();
    return !interrupted();
  };
  const Result<tensorcast::onnx::Needs> needs = tensorcast::onnx::needs(request);
  if (!needs) return misuse(needs.error());
  ordered_json compared = ordered_json::array();
  if (arguments.validation.wanted) {
    const Result<Validator> validator = Validator::find(arguments.validation, arguments.quiet);
    if (!validator) return fail(validator.error());
    request.check = [&, validator = *validator](const std::string& made) -> Result<void> {
      // A scheme names its type.
      compared = TRY(validator.compare(request.input, made, needs->to));
      return {};
    };
  }
  if (!needs->missing_kernel.empty()) warn(needs->missing_kernel, "`runtime` names another one, or any");
  const Result<ConvertOutcome> outcome = tensorcast::onnx::convert(request);
  if (!outcome && interrupted()) return report_interruption();
  if (!outcome) return fail(outcome.error());
  if (!arguments.picture.empty()) {
    const Result<void> drawn = write_picture(arguments.picture, request.output, files, request.overwrite);
    if (!drawn && interrupted()) return report_interruption("the model is written, the picture is not");
    if (!drawn) return fail(drawn.error());
  }
  if (arguments.json) {
    ordered_json json = outcome_json(request, *outcome);
    if (request.check) {
      json["validated"] = true;
      json["outputs"] = compared;
    }
    print(json_text(json));
    return exit_done;
  }
  if (arguments.quiet) return exit_done;
  const bool has_scheme = !request.weights_scheme.empty();
  const bool nothing = outcome->opset_after == outcome->opset_before && outcome->values_changed == 0 &&
                       outcome->casts_added == 0 && outcome->casts_removed == 0 && outcome->calls_inlined == 0;
  print(fmt::format("{}: {}\n", printable(request.dry_run ? request.input : request.output),
                    !nothing ? changes_text(*outcome, has_scheme)
                    : request.opset == tensorcast::onnx::auto_opset
                        ? fmt::format("0 changes, so its opset stays {}", outcome->opset_after)
                        : "0 changes"));
  if (!nothing || request.weights_only) print(notes_text(*outcome));
  print(weights_text(*outcome, has_scheme));
  print(validation_text(compared));
  for (const NodeDecision& decision : outcome->explained) print(explanation_text(decision));
  return exit_done;
}

// Entries with a type, such as x=float32, are types of inputs and outputs; others are names of those that stay.
void take_io_types(std::string_view list, ConvertRequest& request) {
  for (const std::string_view entry : tensorcast::split(list, ',')) {
    const std::size_t equals = entry.rfind('=');
    const auto dtype = equals == std::string_view::npos ? tensorcast::Result<tensorcast::DType>(tensorcast::Error{})
                                                        : tensorcast::parse_dtype(entry.substr(equals + 1));
    if (dtype) {
      request.io_types.emplace_back(entry.substr(0, equals), *dtype);
    } else if (!entry.empty()) {
      request.keep_io_names.emplace_back(entry);
    }
  }
}

std::int64_t parse_opset(const std::string& text) {
  if (text == "keep") return tensorcast::onnx::keep_opset;
  if (text == "auto") return tensorcast::onnx::auto_opset;
  const std::int64_t opset = tensorcast::parse_whole<std::int64_t>(text).value_or(0);
  if (opset > 0) return opset;
  throw CLI::ValidationError("--opset", fmt::format("\"{}\" is neither keep nor auto nor an opset", printable(text)));
}

// Adds the options of the list.
void add_model_options(CLI::App& command, OnnxConvertArguments& arguments) {
  namespace options = tensorcast::options;
  options::for_each(options::model_options, [&](const auto& option) {
    using Option = std::decay_t<decltype(option)>;
    const std::string flag = option_name(option.name);
    if constexpr (options::is_io_types<Option>) {
      command.add_option(flag, arguments.io_types, help_text(option))->expected(0, 1)->option_text(value_name(option));
    } else if constexpr (options::is_weights_scheme<Option>) {
      command.add_option(flag, arguments.request.*option.member, help_text(option))
          ->expected(0, 1)
          ->option_text(value_name(option));
    } else if constexpr (std::is_same_v<typename Option::Type, std::int64_t>) {
      command.add_option(flag, arguments.opset, help_text(option))->option_text(value_name(option));
    } else {
      add_listed(command, option, arguments.request.*option.member);
    }
  });
}

}  // namespace

void add_onnx_convert(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("convert", "Convert a model to float16, bfloat16, float32 or float64");
  command.footer(onnx_convert_examples);
  const auto arguments = std::make_shared<OnnxConvertArguments>();
  ConvertRequest& request = arguments->request;

  command.add_option("MODEL", request.input, "the ONNX model");
  CLI::Option* output = command.add_option("-o,--output", request.output, "where the new model goes; may be MODEL");
  output->option_text("OUT");
  const CLI::Option* to = add_dtype(command, "--to", request.to, "the type that floating values become");
  add_model_options(command, *arguments);
  add_picture(command, arguments->picture)->excludes(command.get_option("--dry-run"));
  add_validation(command, arguments->validation);
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);

  const CLI::Option* keep_io = command.get_option("--keep-io-types");
  const CLI::Option* weights = command.get_option("--weights-only");
  command.callback([arguments, keep_io, weights, to, output, &work] {
    ConvertRequest& wanted = arguments->request;
    wanted.weights_only = weights->count() > 0;
    if (wanted.input.empty()) std::swap(wanted.input, wanted.weights_scheme);  // what stood behind a bare option
    if (wanted.input.empty()) throw CLI::RequiredError("MODEL");
    if (to->count() == 0 && wanted.weights_scheme.empty()) throw CLI::RequiredError("--to");
    if (output->count() == 0 && !wanted.dry_run) throw CLI::RequiredError("--output");
    take_io_types(arguments->io_types, wanted);
    wanted.keep_io_types = keep_io->count() > 0 && wanted.keep_io_names.empty() && wanted.io_types.empty();
    wanted.opset = parse_opset(arguments->opset);
    work = [arguments] { return convert_onnx(*arguments); };
  });
}

void add_onnx(CLI::App& app, Work& work) {
  CLI::App& group = *app.add_subcommand("onnx", "Change, clean and compare ONNX models");
  group.footer(onnx_examples);
  group.require_subcommand(1);
  for (const auto add : {add_onnx_convert, add_onnx_casts, add_onnx_clean, add_onnx_diff, add_onnx_add_cast,
                         add_onnx_respell, add_onnx_use_tensorcast})
    add(group, work);
}

}  // namespace tcast
