// SPDX-License-Identifier: Apache-2.0
// tcast verify: reads a converted checkpoint again.
#include <memory>

#include <fmt/format.h>

#include "command.hpp"
#include "flags/convert_rules.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/progress_bar.hpp"
#include "process/terminal.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {
namespace {

constexpr const char* verify_examples = R"(Examples:
  tcast verify OUT                     hash every file, compare with SHA256SUMS
  tcast verify OUT --against DIR       also convert every tensor of DIR again, and compare it with OUT's
  tcast verify OUT --against DIR --scale 0.5
      give the conversion options that OUT was made with
  tcast verify small-q8_0.gguf --against wide.gguf
Without SHA256SUMS, --against alone compares the tensors.)";

struct VerifyArguments {
  tensorcast::VerifyRequest request;
  bool json = false;
  bool quiet = false;
};

int verify(VerifyArguments& arguments) {
  tensorcast::VerifyRequest& request = arguments.request;
  const CancellableWork cancellable;
  const tensorcast::Result<tensorcast::VerifyOutcome> outcome =
      with_progress(request, arguments.quiet, tensorcast::verify_checkpoint);
  if (!outcome && outcome.error().code == tensorcast::ErrorCode::cancelled) {
    return report_interruption("the rest was not verified");
  }
  if (!outcome) return fail(outcome.error());
  for (const std::string& warning : outcome->warnings) warn(printable(warning));
  if (arguments.json) {
    print(json_text({{"checkpoint", request.checkpoint},
                     {"files", outcome->files},
                     {"tensors", outcome->tensors},
                     {"bytes_read", outcome->bytes_read},
                     {"warnings", outcome->warnings},
                     {"recipes", outcome->recipes}}));
    return exit_done;
  }
  if (arguments.quiet) return exit_done;
  std::string text = printable(request.checkpoint) + ": ";
  if (outcome->files != 0) text += fmt::format("{} as in SHA256SUMS", count_text(outcome->files, "file"));
  if (!request.against.empty()) {
    text += fmt::format("{}{} as converted from {}", outcome->files != 0 ? ", " : "",
                        count_text(outcome->tensors, "tensor"), printable(request.against));
  }
  for (const std::string& recipe : outcome->recipes) text += ", " + recipe;
  print(text + "\n");
  return exit_done;
}

}  // namespace

void add_verify(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("verify", "Read a converted checkpoint again and check every byte");
  command.footer(verify_examples);
  const auto arguments = std::make_shared<VerifyArguments>();
  command.add_option("OUT", arguments->request.checkpoint, "folder of the checkpoint")->required();
  command.add_option("--against", arguments->request.against, "the checkpoint that it was converted from")
      ->option_text("DIR");
  command
      .add_option("--importance", arguments->request.importance,
                  "the file of importance that weights of OUT were quantized with")
      ->option_text("FILE");
  add_output_filter(command, arguments->request.filter);
  add_threads(command, arguments->request.execution.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, arguments->request.options);
  command.callback([arguments, &work] { work = [arguments] { return verify(*arguments); }; });
}

}  // namespace tcast
