// SPDX-License-Identifier: Apache-2.0
// tcast onnx use-tensorcast: Casts that run in tensorcast's library where a session has it.
#include <memory>

#include <fmt/format.h>

#include "commands/onnx_commands.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/onnx.hpp"

namespace tcast {
namespace {

using tensorcast::Result;
using tensorcast::onnx::UseTensorcastOutcome;
using tensorcast::onnx::UseTensorcastRequest;

struct UseTensorcastArguments {
  UseTensorcastRequest request;
  bool json = false;
  bool quiet = false;
};

constexpr const char* use_tensorcast_examples = R"(Examples:
  tcast onnx use-tensorcast model.onnx -o model-tc.onnx
  tcast onnx use-tensorcast model.onnx -o model.onnx --force
      change the file itself; it is replaced only when the new one is complete
Each Cast becomes a call of ai.tensorcast::Cast, a function of the model whose body is ONNX's Cast. ONNX Runtime runs the
operator of tensorcast's library in its place if the session has that library, and the body otherwise. Casts in subgraphs
and functions are rewritten, too; those in a function whose opset is not the model's stay. Everything else is copied byte
for byte. External data stays where it is, or its files are copied if OUT is in another folder. Needs opset 13 and file
format 8 or newer. Rewriting the result again changes nothing.)";

int use_tensorcast(const UseTensorcastArguments& arguments) {
  const UseTensorcastRequest& request = arguments.request;
  const CancellableWork cancellable;
  const Result<UseTensorcastOutcome> outcome = tensorcast::onnx::use_tensorcast(request);
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text({{"input", request.input},
                     {"output", request.output},
                     {"casts_rewritten", outcome->rewritten},
                     {"casts_left", outcome->left}}));
  } else if (!arguments.quiet) {
    print(fmt::format("{}: {}{}\n", printable(request.output),
                      outcome->rewritten == 0 ? "0 changes" : count_text(outcome->rewritten, "Cast") + " rewritten",
                      outcome->left == 0
                          ? std::string()
                          : fmt::format(", {} left in functions of another opset", grouped(outcome->left))));
  }
  return exit_done;
}

}  // namespace

void add_onnx_use_tensorcast(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("use-tensorcast", "Let Casts run in tensorcast's library in ONNX Runtime");
  command.footer(use_tensorcast_examples);
  const auto arguments = std::make_shared<UseTensorcastArguments>();
  UseTensorcastRequest& request = arguments->request;
  command.add_option("MODEL", request.input, "the ONNX model")->required();
  command.add_option("-o,--output", request.output, "where the new model goes; may be MODEL")
      ->required()
      ->option_text("OUT");
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] { work = [arguments] { return use_tensorcast(*arguments); }; });
}

}  // namespace tcast
