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
#include "tensorcast/attestation.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {
namespace {

constexpr const char* verify_examples = R"(Examples:
  tcast verify OUT                     hash every file, compare with SHA256SUMS
  tcast verify OUT --against DIR       also convert every tensor of DIR again, and compare it with OUT's
  tcast verify OUT --against DIR --scale 0.5
      give the conversion options that OUT was made with
  tcast verify small-q8_0.gguf --against wide.gguf
  tcast verify OUT --attestation OUT/attestation.intoto.json --against DIR
      convert DIR again as the statement says, and compare every byte of OUT
Without SHA256SUMS, --against alone compares the tensors.)";

struct VerifyArguments {
  tensorcast::VerifyRequest request;
  std::string attestation;
  bool json = false;
  bool quiet = false;
};

// Compares OUT with a statement. The statement has the options, so the flags of a conversion do not count.
int verify_statement(VerifyArguments& arguments) {
  tensorcast::AttestationRequest request{.checkpoint = arguments.request.checkpoint,
                                         .attestation = arguments.attestation,
                                         .against = arguments.request.against,
                                         .importance = arguments.request.importance,
                                         .execution = arguments.request.execution};
  const CancellableWork cancellable;
  const tensorcast::Result<tensorcast::AttestationOutcome> outcome =
      with_progress(request, arguments.quiet, tensorcast::verify_attestation);
  if (!outcome && outcome.error().code == tensorcast::ErrorCode::cancelled) {
    return report_interruption("the rest was not verified");
  }
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text({{"checkpoint", request.checkpoint},
                     {"attestation", request.attestation},
                     {"files", outcome->files},
                     {"inputs", outcome->inputs},
                     {"bytes_read", outcome->bytes_read},
                     {"rederived", outcome->rederived}}));
    return exit_done;
  }
  if (arguments.quiet) return exit_done;
  const std::string files = fmt::format("{}: {} as in {}", printable(request.checkpoint),
                                        count_text(outcome->files, "file"), printable(request.attestation));
  if (!outcome->rederived) {
    print(files + "; nothing was derived again: --against IN does\n");
  } else {
    print(fmt::format("{}, every byte as converted from {} of {}\n", files, count_text(outcome->inputs, "file"),
                      printable(request.against)));
  }
  return exit_done;
}

int verify(VerifyArguments& arguments) {
  if (!arguments.attestation.empty()) return verify_statement(arguments);
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
  CLI::Option* const attestation = command.add_option(
      "--attestation", arguments->attestation,
      "a statement of tcast convert --attest; OUT must have the files that it names, and with --against "
      "every byte must be the one that its conversion makes");
  attestation->option_text("FILE");
  command
      .add_option("--importance", arguments->request.importance,
                  "the file of importance that weights of OUT were quantized with")
      ->option_text("FILE");
  add_output_filter(command, arguments->request.filter);
  add_threads(command, arguments->request.execution.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, arguments->request.options);
  // A statement has the options of the conversion itself.
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_of_both = option == attestation || name == "OUT" || name == "--help" || name == "--against" ||
                            name == "--importance" || name == "--threads" || name == "--json" || name == "--quiet";
    if (!is_of_both) attestation->excludes(option);
  }
  command.callback([arguments, &work] { work = [arguments] { return verify(*arguments); }; });
}

}  // namespace tcast
