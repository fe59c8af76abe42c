// SPDX-License-Identifier: Apache-2.0
// tcast onnx add-cast: puts a Cast into a model.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "commands/onnx_commands.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/model.hpp"

namespace tcast {
namespace {

using tensorcast::AddCastOutcome;
using tensorcast::AddCastRequest;
using tensorcast::Result;

struct AddCastArguments {
  AddCastRequest request;
  bool no_saturate = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* add_cast_examples = R"(Examples:
  tcast onnx add-cast model.onnx --tensor logits --to float16 -o model-f16.onnx
      TENSOR may be an input of the graph, an initializer or an output of any node, in subgraphs too
  tcast onnx add-cast model.onnx --tensor x --to e4m3fn --name to_fp8 --output-name x_fp8 -o fp8.onnx
  tcast onnx add-cast model.onnx --tensor weight --to bf16 -o model.onnx --force
      change the file itself; it is replaced only when the new one is complete
All nodes that took TENSOR take the result of the Cast, those in subgraphs too; whether they accept its type is for
onnx.checker to say. Where TENSOR is an output of the model, the result becomes the output in its place, under its own
name and type. Everything else is copied byte for byte: unknown fields, functions, external data by its location, so
that a model with external data must stay in its folder.)";

int add_cast(AddCastArguments& arguments) {
  AddCastRequest& request = arguments.request;
  std::optional<CancellableWork> cancellable;  // from the first call on; before, a signal ends the program at once
  request.on_progress = [&] {
    if (!cancellable) cancellable.emplace();
    return !interrupted();
  };
  const Result<AddCastOutcome> outcome = tensorcast::add_cast(request);
  if (!outcome && outcome.error().code == tensorcast::ErrorCode::cancelled) return report_interruption();
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text({{"input", request.input},
                     {"output", request.output},
                     {"tensor", request.tensor},
                     {"to", name(request.to)},
                     {"node_name", outcome->node_name},
                     {"output_name", outcome->output_name},
                     {"rewired", outcome->rewired},
                     {"graph_output_renamed", outcome->graph_output_renamed}}));
  } else if (!arguments.quiet) {
    print(fmt::format("{}: \"{}\" -> node \"{}\" -> \"{}\" ({}), {} rewired\n", printable(request.output),
                      printable(request.tensor), printable(outcome->node_name), printable(outcome->output_name),
                      name(request.to), count_text(outcome->rewired, "input")));
    if (outcome->graph_output_renamed) {
      print(fmt::format("the model's output \"{}\" is now \"{}\"\n", printable(request.tensor),
                        printable(outcome->output_name)));
    }
  }
  return exit_done;
}

}  // namespace

void add_onnx_add_cast(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("add-cast", "Put a Cast behind a tensor of an ONNX model");
  command.footer(add_cast_examples);
  const auto arguments = std::make_shared<AddCastArguments>();
  AddCastRequest& request = arguments->request;

  command.add_option("MODEL", request.input, "the ONNX model")->required();
  command.add_option("--tensor", request.tensor, "the value to convert")->required()->option_text("NAME");
  add_dtype(command, "--to", request.to, "the type that it becomes")->required();
  command.add_option("--name", request.node_name, "of the new node (default: made from the tensor's)")
      ->option_text("NAME");
  command.add_option("--output-name", request.output_name, "of the converted value (default: made from the tensor's)")
      ->option_text("NAME");
  command.add_option("-o,--output", request.output, "where the new model goes; may be MODEL")
      ->required()
      ->option_text("OUT");
  command.add_flag("--no-saturate", arguments->no_saturate, "float8: overflow becomes NaN or infinity (opset 19)");
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);

  command.callback([arguments, &work] {
    arguments->request.saturate = !arguments->no_saturate;
    work = [arguments] { return add_cast(*arguments); };
  });
}

}  // namespace tcast
