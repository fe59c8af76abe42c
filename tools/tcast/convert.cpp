// tcast convert: every tensor of a file becomes another type.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command.hpp"
#include "conversion_summary.hpp"
#include "convert_rules.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "printable.hpp"
#include "progress_bar.hpp"
#include "report_file.hpp"
#include "standard_streams.hpp"
#include "terminal.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertOutcome;
using tensorcast::ConvertRequest;
using tensorcast::Result;

struct ConvertArguments {
  ConvertRequest request;
  InputLayout layout;
  std::vector<std::string> rules;
  std::vector<std::string> rule_files;
  std::string report_path;
  bool json = false;
  bool quiet = false;
};

constexpr const char* convert_examples = R"(Examples:
  tcast convert model.safetensors -o small.safetensors --to bfloat16
  tcast convert model.safetensors -o fp8.safetensors --to float8_e4m3fn --report fp8.json
      say what it did to the numbers, and write the details down
  tcast convert model.safetensors -o fp8.safetensors --to e4m3fn --exclude norm --rule 'lm_head=bf16' --dry-run
      show what would become what, and why; write nothing
  tcast convert weights.npy -o weights.safetensors --to f16 --verify
  producer | tcast convert - -o - --to bf16 > x.npy
  tcast convert dump.bin -o dump.npy --raw --from bf16 --shape 4096,4096 --to f32
  tcast convert image.npy -o image_u8.npy --to float32 --rule '.*=uint8' --scale 255 --out-of-range saturate
REGEX is RE2's syntax: it may match any part of a name, and has no backreferences and no lookaround.
Only floating-point tensors take --to; integer, bool and string tensors are copied unless a rule names them.
OUT may be IN. OUT appears only when it is complete; nothing is left behind after an error or Ctrl-C.)";

// The files that a report must not overwrite.
std::vector<std::string> files_of(const ConvertArguments& arguments) {
  std::vector<std::string> files = arguments.rule_files;
  files.push_back(arguments.request.input);
  files.push_back(arguments.request.output);
  return files;
}

void print_outcome(const ConvertArguments& arguments, const ConvertOutcome& outcome, double seconds) {
  const ConvertRequest& request = arguments.request;
  if (arguments.json) {
    print(json_text(outcome_json(request, outcome, seconds)));
    return;
  }
  if (arguments.quiet) return;
  if (request.dry_run) {
    print(plan_table(outcome));
    print(fmt::format("\n{} -> {} ({} -> {}): {}; nothing was written\n", printable(request.input),
                      printable(request.output), outcome.input_format, outcome.output_format, tensor_counts(outcome)));
    return;
  }
  if (request.report) print(loss_summary(outcome) + "\n");
  const std::uint64_t bytes = outcome.bytes_read + outcome.bytes_written;
  print(fmt::format("{}: {}, {} -> {} in {}, {}{}\n", printable(request.output), tensor_counts(outcome),
                    bytes_text(outcome.bytes_read), bytes_text(outcome.bytes_written), duration_text(seconds),
                    rate_text(static_cast<double>(bytes) / std::max(seconds, 1e-9)),
                    outcome.verified ? ", verified" : ""));
}

// Files in the place of `-`.
Result<void> replace_standard_streams(ConvertRequest& request, StandardOutput& output) {
  if (request.output == standard_stream) {
    if (request.output_format.empty()) request.output_format = "npy";
    if (request.output_format != "npy") {
      return tensorcast::Error{.code = tensorcast::ErrorCode::unsupported,
                               .message = "only npy is written to standard output",
                               .hint = "-o FILE"};
    }
    Result<std::string> path = output.create();
    if (!path) return std::move(path).error();
    request.output = *std::move(path);
  }
  if (request.input == standard_stream) {
    Result<std::string> path = standard_input_as_file();
    if (!path) return std::move(path).error();
    request.input = *std::move(path);
  }
  return {};
}

int convert(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  for (const std::string& path : arguments.rule_files) {
    Result<std::vector<tensorcast::ConvertRule>> rules = read_rules(path);
    if (!rules) return fail(rules.error());
    request.rules.insert(request.rules.end(), rules->begin(), rules->end());
  }
  if (!arguments.report_path.empty()) {
    const Result<void> usable = check_report_path(arguments.report_path, files_of(arguments), request.overwrite);
    if (!usable) return fail(usable.error());
  }

  // Until then a signal ends the program at once: reading a directory of many compressed texts may take long.
  std::optional<CancellableWork> cancellable;
  StandardOutput standard_output;
  const std::string shown_input = request.input;
  const std::string shown_output = request.output;
  if (const Result<void> ready = replace_standard_streams(request, standard_output); !ready) return fail(ready.error());
  const auto start = std::chrono::steady_clock::now();
  Result<ConvertOutcome> outcome = [&] {
    ProgressBar bar(!arguments.quiet);
    request.on_progress = [&](const tensorcast::Progress& progress) {
      if (!cancellable) cancellable.emplace();
      bar.show(progress);
      return !interrupted();
    };
    return tensorcast::convert_file(request);
  }();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome) {
    std::string& file = outcome.error().file;
    if (file == request.input) file = shown_input;
    if (file == request.output) file = shown_output;
    return fail(outcome.error());
  }
  request.input = shown_input;
  request.output = shown_output;
  if (outcome->cancelled) return report_interruption();

  if (!arguments.report_path.empty()) {
    const Result<void> written = write_report(arguments.report_path, files_of(arguments),
                                              json_text(outcome_json(request, *outcome, seconds)), request.overwrite);
    if (!written) return fail(written.error());
  }
  if (shown_output == standard_stream && !request.dry_run) {
    const Result<void> sent = standard_output.send();
    return sent ? exit_done : fail(sent.error());
  }
  print_outcome(arguments, *outcome, seconds);
  return exit_done;
}

void check_usage(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  request.raw = arguments.layout.raw_layout();
  request.from = arguments.layout.from;
  request.report = !arguments.report_path.empty() || arguments.json;
  for (const std::string& text : arguments.rules) {
    const Result<tensorcast::ConvertRule> rule = parse_rule(text);
    if (!rule) {
      const tensorcast::Error& error = rule.error();
      throw CLI::ValidationError("--rule", error.hint.empty() ? error.message : error.message + "; " + error.hint);
    }
    request.rules.push_back(*rule);
  }
  if (arguments.json && request.output == standard_stream) {
    throw CLI::ValidationError("--json", "standard output is taken by -o -");
  }
  if (request.to == tensorcast::DType::undefined && request.rules.empty() && arguments.rule_files.empty()) {
    throw CLI::RequiredError("--to DTYPE or --rule REGEX=DTYPE");
  }
}

CLI::Option* add_patterns(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                          const std::string& help) {
  CLI::Option* option = repeatable(app.add_option(name, target, help)->option_text("REGEX"));
  option->check(CLI::Validator([](std::string& pattern) { return regex_complaint(pattern); }, ""));
  return option;
}

}  // namespace

void add_convert(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("convert", "Convert the tensors of a file to another type");
  command.footer(convert_examples);
  const auto arguments = std::make_shared<ConvertArguments>();
  ConvertRequest& request = arguments->request;
  request.options.threads = 0;

  command
      .add_option("IN", request.input,
                  "file to read, - for standard input; its kind is known by its content and extension")
      ->required();
  command
      .add_option("-o,--output", request.output,
                  "file to write, - for an npy on standard output; its extension says which kind")
      ->required()
      ->option_text("OUT");
  add_dtype(command, "--to", request.to, "type for floating-point tensors that no rule names");
  add_patterns(command, "--include", request.include, "convert only tensors whose name matches; repeatable");
  add_patterns(command, "--exclude", request.exclude, "leave tensors alone whose name matches; repeatable");
  repeatable(command.add_option("--rule", arguments->rules,
                                "type for tensors whose name matches; the first match wins; repeatable"))
      ->option_text("REGEX=DTYPE");
  repeatable(command.add_option("--rules", arguments->rule_files,
                                "more rules, one a line, after those of --rule; # starts a comment"))
      ->option_text("FILE");
  command
      .add_option("--report", arguments->report_path, "measure what is lost, print a summary, write all of it as JSON")
      ->option_text("FILE.json");
  command.add_flag("--dry-run", request.dry_run, "print what would become what, and why; write nothing");
  command.add_flag("--verify", request.verify, "read the output back and compare every element with the reference");
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT and the report");
  add_input_layout(command, arguments->layout);
  command.add_option("--input-format", request.input_format, "instead of looking: " + format_names())
      ->option_text("FORMAT");
  command.add_option("--output-format", request.output_format, "instead of going by the extension of OUT")
      ->option_text("FORMAT");
  add_threads(command, request.options.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, request.options);

  command.callback([arguments, &work] {
    check_usage(*arguments);
    work = [arguments] { return convert(*arguments); };
  });
}

}  // namespace tcast
