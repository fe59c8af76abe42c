// tcast onnx: changes the precision of ONNX models.
#include <memory>

#include <fmt/format.h>

#include "failure.hpp"
#include "interrupt.hpp"
#include "onnx_commands.hpp"
#include "options.hpp"
#include "printable.hpp"
#include "report_json.hpp"
#include "tensorcast/onnx.hpp"
#include "terminal.hpp"

namespace tcast {
namespace {

using tensorcast::Result;
using tensorcast::onnx::ConvertOutcome;
using tensorcast::onnx::ConvertRequest;
using tensorcast::onnx::KeptNode;

struct OnnxConvertArguments {
  ConvertRequest request;
  bool json = false;
  bool quiet = false;
};

constexpr const char* onnx_examples = R"(Examples:
  tcast onnx convert model.onnx -o model-f16.onnx --to float16
`tcast onnx convert --help` shows more.)";

constexpr const char* onnx_convert_examples = R"(Examples:
  tcast onnx convert model.onnx -o model-f16.onnx --to float16 --keep-io-types
      inputs and outputs keep their types; a Cast stands behind or before them
  tcast onnx convert model-f16.onnx -o model-f32.onnx --to float32
      back again: no value of the model has another floating type
  tcast onnx convert model.onnx -o small.onnx --to bfloat16 --weights-only
      only initializers become bfloat16, and a Cast behind each gives back the old type
  tcast onnx convert model.onnx -o mixed.onnx --to float16 --keep-op Softmax --keep-node /head/MatMul
Each value gets one type: the new one where the schemas of the operators, in the model's own opset, and the runtime
allow it. Sizes and indices that are computed as floats keep their type, as do initializers with numbers beyond the new
range, and unknown operators. A Cast stands exactly where two types meet. Everything else is copied byte for byte.
External data goes into OUT.data. Converting the result again changes nothing.)";

nlohmann::ordered_json outcome_json(const ConvertRequest& request, const ConvertOutcome& outcome) {
  nlohmann::ordered_json kept = nlohmann::ordered_json::array();
  for (const KeptNode& node : outcome.kept) {
    kept.push_back({{"name", node.name}, {"op_type", node.op_type}, {"reason", node.reason}});
  }
  return {{"input", request.input},
          {"output", request.output},
          {"to", name(request.to)},
          {"nodes", outcome.nodes},
          {"nodes_converted", outcome.nodes_converted},
          {"values_changed", outcome.values_changed},
          {"casts_before", outcome.casts_before},
          {"casts_added", outcome.casts_added},
          {"casts_removed", outcome.casts_removed},
          {"initializers_converted", outcome.initializers_converted},
          {"initializer_bytes_before", outcome.initializer_bytes_before},
          {"initializer_bytes_after", outcome.initializer_bytes_after},
          {"kept", kept}};
}

int convert_onnx(const OnnxConvertArguments& arguments) {
  const ConvertRequest& request = arguments.request;
  const CancellableWork cancellable;
  const Result<ConvertOutcome> outcome = tensorcast::onnx::convert(request);
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text(outcome_json(request, *outcome)));
  } else if (!arguments.quiet) {
    const bool nothing = outcome->values_changed == 0 && outcome->casts_added == 0;
    print(fmt::format("{}: {}\n", printable(request.output),
                      nothing ? std::string("0 changes")
                              : fmt::format("{} of {} in {}, {} and {} changed, {} added", outcome->nodes_converted,
                                            count_text(outcome->nodes, "node"), name(request.to),
                                            count_text(outcome->values_changed, "value"),
                                            count_text(outcome->initializers_converted, "initializer"),
                                            count_text(outcome->casts_added, "Cast"))));
  }
  return exit_done;
}

}  // namespace

void add_onnx_convert(CLI::App& group, Work& work) {
  using tensorcast::onnx::Masks;
  using tensorcast::onnx::OnOverflow;
  using tensorcast::onnx::Runtime;
  CLI::App& command = *group.add_subcommand("convert", "Convert a model to float16, bfloat16, float32 or float64");
  command.footer(onnx_convert_examples);
  const auto arguments = std::make_shared<OnnxConvertArguments>();
  ConvertRequest& request = arguments->request;

  command.add_option("MODEL", request.input, "the ONNX model")->required();
  command.add_option("-o,--output", request.output, "where the new model goes; may be MODEL")
      ->required()
      ->option_text("OUT");
  add_dtype(command, "--to", request.to, "the type that floating values become")->required();
  add_dtypes(command, "--from", request.from, "only values of these types (default: all that --to can be)");
  CLI::Option* keep_io = command
                             .add_option("--keep-io-types", request.keep_io_names,
                                         "all inputs and outputs of the model keep their types, or only those in NAMES")
                             ->expected(0, 1)
                             ->delimiter(',')
                             ->option_text("[NAMES]");
  repeatable(command.add_option("--keep-op", request.keep_op_types, "nodes of this operator stay; may be repeated"))
      ->option_text("TYPE");
  repeatable(command.add_option("--keep-node", request.keep_nodes, "the node of this name stays; may be repeated"))
      ->option_text("NAME");
  command.add_flag("--weights-only", request.weights_only,
                   "only initializers change; float8 types, too, with opset 19 or later");
  add_choice(command, "--runtime", request.runtime,
             {{"onnxruntime_cpu", Runtime::onnxruntime_cpu}, {"any", Runtime::any}},
             "where the model must run (default onnxruntime_cpu; any: by ONNX's schemas alone)");
  add_choice(command, "--on-overflow", request.on_overflow,
             {{"keep_high", OnOverflow::keep_high},
              {"clamp", OnOverflow::clamp},
              {"inf", OnOverflow::inf},
              {"error", OnOverflow::error}},
             "initializers beyond the range (default keep_high: they and their nodes keep the type)");
  add_choice(command, "--masks", request.masks,
             {{"finite", Masks::finite}, {"inf", Masks::inf}, {"as_others", Masks::as_others}},
             "constants such as -1e9 and -3.4e38 (default finite: the lowest number)");
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);

  command.callback([arguments, keep_io, &work] {
    ConvertRequest& wanted = arguments->request;
    std::erase(wanted.keep_io_names, "");
    wanted.keep_io_types = keep_io->count() > 0 && wanted.keep_io_names.empty();
    work = [arguments] { return convert_onnx(*arguments); };
  });
}

void add_onnx(CLI::App& app, Work& work) {
  CLI::App& group = *app.add_subcommand("onnx", "Change, clean and compare ONNX models");
  group.footer(onnx_examples);
  group.require_subcommand(1);
  for (const auto add : {add_onnx_convert, add_onnx_casts, add_onnx_clean, add_onnx_diff}) add(group, work);
}

}  // namespace tcast
