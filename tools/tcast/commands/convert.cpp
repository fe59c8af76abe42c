// SPDX-License-Identifier: Apache-2.0
// tcast convert: converts the tensors of a file to other types.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "command.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "flags/convert_rules.hpp"
#include "flags/options.hpp"
#include "flags/request_flags.hpp"
#include "print/checkpoint_summary.hpp"
#include "print/conversion_summary.hpp"
#include "print/report_file.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/progress_bar.hpp"
#include "process/standard_streams.hpp"
#include "process/terminal.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertOutcome;
using tensorcast::ConvertRequest;
using tensorcast::PathUse;
using tensorcast::Result;
namespace options = tensorcast::options;

struct ConvertArguments {
  ConvertRequest request;
  InputLayout layout;
  std::vector<std::string> rules;
  std::vector<std::string> rule_files;
  std::string report_path;
  bool plan_only = false;  // tcast plan
  bool strict_loss = false;
  bool allow_loss = false;
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
  tcast convert model.safetensors -o embedding.npy --include '^embed\.weight$'
      take one tensor out, as it is or with --to
  tcast convert model.safetensors -o new/folder/int8.safetensors --to int8 --scale 127 --parents --strict-loss
      fail if any number overflows or is clamped, or more than 1 % of them become zero
  tcast convert folder/ -o folder-bf16 --to bfloat16
      a checkpoint: all shards, the index, config.json's torch_dtype; other files are copied. After a crash the same
      command goes on where it stopped
  tcast convert folder/ -o folder-nvfp4 --to nvfp4 --dry-run
      quantize the matrices of layers as ModelOpt does; show which stay, and why
  tcast convert model-f16.gguf -o model-q4_k.gguf --to q4_k
  tcast convert folder/ -o folder-small --budget 4.5bits --candidates nvfp4,mxfp6,mxfp8 --report choice.json
      for each matrix the scheme that loses least, 4.5 bits on average with scales; the report says why
  tcast convert folder/ -o folder-fp8 --to float8_e4m3fn --preset weights-only --dry-run
  tcast convert folder/ -o head.npy --only '^lm_head.weight$'
      one tensor of a checkpoint, whatever its shard
  tcast convert train.pt -o model.safetensors --only '^model\.' --rename '^model\.module\.='
      the weights of a training checkpoint, without the prefix
  tcast convert folder/ -o folder-f16 --to float16 --keep-rank 0,1 --max-shard-size 5GB
In safetensors, npz, gguf and PyTorch, --to converts floating-point tensors only: others are copied unless a rule names
them. The array of an npy, pb or raw file is converted whatever its type.
What a PyTorch checkpoint has besides tensors, such as an optimizer's settings, goes to OUT.json.
A tensor more than half of whose nonzero elements become zero is an error; --allow-loss converts it all the same.
A warning names a tensor if an element overflows to infinity, wraps around or was NaN and is not, if more than 1 % of
the elements are out of range, or if the signal to noise ratio is under 3 dB.
--strict-loss makes all that an error, and any element that is out of range, or infinite and then is not; of the nonzero
elements of a tensor, --zero-limit may become zero.
REGEX is RE2's syntax: it may match any part of a name, and has no backreferences and no lookaround.
OUT may be IN. OUT appears only when it is complete; nothing is left behind after an error or Ctrl-C.)";

// What the conversion reads and writes. A checkpoint's index stands for its folder.
std::vector<PathUse> paths_of(const ConvertArguments& arguments) {
  const ConvertRequest& request = arguments.request;
  const bool checkpoint = tensorcast::is_checkpoint(request.input);
  std::string input = request.input;
  std::error_code ignored;
  if (checkpoint && !std::filesystem::is_directory(input, ignored)) {
    input = std::filesystem::path(input).parent_path().string();
    if (input.empty()) input = ".";
  }
  std::vector<PathUse> paths = {{.path = input, .noun = "input", .folder = checkpoint},
                                {.path = request.output, .noun = "output", .folder = checkpoint}};
  for (const std::string& file : arguments.rule_files) paths.push_back({.path = file, .noun = "file of rules"});
  return paths;
}

// Checks that neither the output nor the report takes the place of something else that the conversion reads or writes.
// The library compares the output with the input.
Result<void> check_paths(const ConvertArguments& arguments) {
  const ConvertRequest& request = arguments.request;
  const std::vector<PathUse> paths = paths_of(arguments);
  const std::span<const PathUse> rules = std::span(paths).subspan(2);
  // In a folder, the library leaves files of others alone.
  if (!paths[0].folder) TRY(tensorcast::check_apart(paths[1], rules));
  if (arguments.report_path.empty()) return {};
  const PathUse report{.path = arguments.report_path, .noun = "report"};
  TRY(tensorcast::check_apart(report, paths));
  // A PyTorch checkpoint may have other data, which get this name.
  const PathUse beside[] = {{.path = request.output + ".json", .noun = "checkpoint's other data"}};
  Result<void> apart = tensorcast::check_apart(report, beside);
  if (apart || paths[0].folder) return {};
  const Result<std::string> data = tensorcast::read_other_data(request.input);
  return data && !data->empty() ? apart : Result<void>();
}

void warn_of_omissions(const ConvertOutcome& outcome) {
  for (const std::string& warning : outcome.warnings) warn(printable(warning));
}

void print_other_data(const ConvertOutcome& outcome) {
  if (outcome.other_data.empty()) return;
  print(fmt::format("{}: the checkpoint's other data\n", printable(outcome.other_data)));
}

void print_outcome(const ConvertArguments& arguments, const ConvertOutcome& outcome, double seconds) {
  const ConvertRequest& request = arguments.request;
  warn_of_omissions(outcome);
  if (arguments.json) {
    Json json = outcome_json(request, outcome, seconds);
    add_checkpoint_json(json, outcome);
    print(json_text(json));
    return;
  }
  if (arguments.quiet) return;
  if (!outcome.shards.empty()) {
    print(checkpoint_text(request, outcome, seconds, arguments.plan_only));
    print(bits_text(outcome));
    return;
  }
  if (request.dry_run) {
    print(plan_table(outcome));
    print(bits_text(outcome));
    print("\n" + passes_text(outcome));
    print(fmt::format("{} -> {} ({} -> {}): {}; nothing was written\n", printable(request.input),
                      printable(request.output), outcome.input_format, outcome.output_format, tensor_counts(outcome)));
    print_other_data(outcome);
    return;
  }
  if (request.report) print(loss_summary(outcome) + "\n");
  const std::uint64_t bytes = outcome.bytes_read + outcome.bytes_written;
  print(fmt::format("{}: {}, {} -> {} in {}, {}{}\n", printable(request.output), tensor_counts(outcome),
                    bytes_text(outcome.bytes_read), bytes_text(outcome.bytes_written), duration_text(seconds),
                    rate_text(static_cast<double>(bytes) / std::max(seconds, 1e-9)),
                    outcome.verified ? ", verified" : ""));
  print(bits_text(outcome));
  print_other_data(outcome);
}

// Replaces `-` by files.
Result<void> replace_standard_streams(ConvertRequest& request, StandardOutput& output) {
  if (request.output == standard_stream) {
    if (request.output_format.empty()) request.output_format = "npy";
    if (request.output_format != "npy")
      return tensorcast::unsupported("only npy is written to standard output", "-o FILE");
    request.output = TRY(output.create());
  }
  if (request.input == standard_stream) request.input = TRY(standard_input_as_file());
  return {};
}

std::string shown_tensor(const tensorcast::TensorOutcome& tensor) {
  const std::string types = fmt::format("{} to {}", tensorcast::name(tensor.from), tensorcast::name(tensor.to));
  return tensor.name.empty() ? types : fmt::format("tensor \"{}\" ({})", qualified_name(tensor), types);
}

// Lists on stderr the tensors that the conversion destroyed.
void warn_of_damage(const ConvertOutcome& outcome) {
  constexpr std::size_t most_named = 5;
  std::vector<const tensorcast::TensorOutcome*> damaged;
  for (const tensorcast::TensorOutcome& tensor : outcome.tensors) {
    if (!tensor.damage.empty()) damaged.push_back(&tensor);
  }
  if (damaged.empty()) return;
  const std::string hint = damaged.front()->remedy + "; --strict-loss makes it an error, --report shows all";
  const std::size_t named = std::min(damaged.size(), most_named);
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == damaged.size();
    warn(fmt::format("{}: {}", shown_tensor(*damaged[i]), damaged[i]->damage), last ? hint : "");
  }
  if (named < damaged.size()) warn(count_text(damaged.size() - named, "more tensor"), hint);
}

// Says what other programs cannot read.
void warn_of_float6(const ConvertOutcome& outcome) {
  if (outcome.output_format != "safetensors") return;
  const auto is_float6 = [](const tensorcast::TensorOutcome& tensor) {
    return tensor.from != tensor.to &&
           (tensor.to == tensorcast::DType::float6_e2m3fn || tensor.to == tensorcast::DType::float6_e3m2fn);
  };
  const auto count = static_cast<std::size_t>(std::count_if(outcome.tensors.begin(), outcome.tensors.end(), is_float6));
  if (count == 0) return;
  warn(fmt::format("{} in float6, which the safetensors library cannot load into PyTorch or NumPy",
                   count_text(count, "tensor")));
}

// Every type that the request converts to.
std::vector<tensorcast::DType> targets_of(const ConvertRequest& request) {
  std::vector<tensorcast::DType> targets = {request.to};
  for (const tensorcast::ConvertRule& rule : request.rules) targets.push_back(rule.to);
  return targets;
}

int convert(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  for (const std::string& path : arguments.rule_files) {
    if (const Result<void> added = add_rules(path, request); !added) return fail(added.error());
  }
  if (!arguments.quiet) warn_of_namesake(targets_of(request));
  if (const Result<void> apart = check_paths(arguments); !apart) return fail(apart.error());
  if (!arguments.report_path.empty()) {
    std::error_code ignored;  // the later check reports it
    if (request.parents) {
      std::filesystem::create_directories(std::filesystem::path(arguments.report_path).parent_path(), ignored);
    }
    const Result<void> usable = check_report_path(arguments.report_path, paths_of(arguments), request.overwrite);
    if (!usable) return fail(usable.error());
  }

  // Set by the first progress report, which precedes the output. Before, a signal ends the program at once: reading the
  // list of tensors may take long.
  std::optional<CancellableWork> cancellable;
  StandardOutput standard_output;
  const std::string shown_input = request.input;
  const std::string shown_output = request.output;
  if (const Result<void> ready = replace_standard_streams(request, standard_output); !ready) return fail(ready.error());
  const bool folder = tensorcast::is_checkpoint(request.input);
  if (folder) {
    // Always the same, as a plan that is resumed must be the same, whoever prints what.
    request.report_casts_only = !request.report;
    request.report = true;
    if (request.on_loss == tensorcast::OnLoss::ignore) request.on_loss = tensorcast::OnLoss::tell;
  }
  std::error_code ignored;
  if (arguments.plan_only && !folder && std::filesystem::exists(request.input, ignored)) {
    return fail("only a checkpoint is planned: a folder or an index", "`tcast convert` converts a file");
  }
  const auto start = std::chrono::steady_clock::now();
  Result<ConvertOutcome> outcome = [&] {
    ProgressBar bar(!arguments.quiet);
    request.on_progress = [&](const tensorcast::Progress& progress) {
      if (!cancellable) cancellable.emplace();
      bar.show(progress);
      return !interrupted();
    };
    return arguments.plan_only ? tensorcast::plan_checkpoint(request) : tensorcast::convert(request);
  }();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome && outcome.error().code == tensorcast::ErrorCode::cancelled) {
    return outcome.error().hint.empty() ? report_interruption() : report_interruption(outcome.error().hint);
  }
  if (!outcome) {
    std::string& file = outcome.error().file;
    if (file == request.input) file = shown_input;
    if (file == request.output) file = shown_output;
    return fail(outcome.error());
  }
  request.input = shown_input;
  request.output = shown_output;

  if (!arguments.report_path.empty()) {
    Json json = outcome_json(request, *outcome, seconds);
    add_checkpoint_json(json, *outcome);
    const Result<void> written =
        write_report(arguments.report_path, paths_of(arguments), json_text(json), request.overwrite);
    if (!written) return fail(written.error());
  }
  const bool sends = shown_output == standard_stream && !request.dry_run;
  if (sends) {
    if (const Result<void> sent = standard_output.send(); !sent) return fail(sent.error());
  } else {
    print_outcome(arguments, *outcome, seconds);
  }
  warn_of_damage(*outcome);
  if (!arguments.quiet) warn_of_float6(*outcome);
  return exit_done;
}

bool asks_for_something(const ConvertArguments& arguments) {
  const ConvertRequest& request = arguments.request;
  const tensorcast::OutputFilter& filter = request.filter;
  return request.to != tensorcast::DType::undefined || !request.scheme.empty() || request.budget != 0.0 ||
         !arguments.rules.empty() || !arguments.rule_files.empty() || !request.include.empty() || request.single_file ||
         request.max_shard_bytes != 0 || !filter.only.empty() || !filter.drop.empty() || !filter.rename.empty() ||
         !request.respell.empty();
}

// Without reading: files are of one format if their extensions are equal.
bool cannot_be_a_change_of_format(const ConvertRequest& request) {
  const auto extension = [](const std::string& path) { return std::filesystem::path(path).extension(); };
  return tensorcast::is_checkpoint(request.input) || extension(request.input) == extension(request.output);
}

void check_usage(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  request.raw = arguments.layout.raw_layout();
  request.from = arguments.layout.from;
  if (!arguments.quiet) request.on_loss = tensorcast::OnLoss::tell;
  if (arguments.strict_loss) request.on_loss = tensorcast::OnLoss::fail;
  request.refuse_zeroed = !arguments.allow_loss;
  request.report = !arguments.report_path.empty() || arguments.json;
  for (const std::string& text : arguments.rules) {
    const Result<tensorcast::ConvertRule> rule = parse_rule(text);
    if (!rule) throw CLI::ValidationError("--rule", complaint_of(rule));
    request.rules.push_back(*rule);
  }
  if (arguments.json && request.output == standard_stream) {
    throw CLI::ValidationError("--json", "standard output is taken by -o -");
  }
  if (!asks_for_something(arguments) && cannot_be_a_change_of_format(request)) {
    throw CLI::RequiredError("--to DTYPE or --rule REGEX=DTYPE");
  }
}

}  // namespace

namespace {

constexpr const char* plan_examples = R"(Examples:
  tcast plan folder/ -o folder-bf16 --to bfloat16
  tcast run-shard folder-bf16                    on one machine, or on many with --shard-of
  tcast finish folder-bf16
The options are those of tcast convert, which does all three steps. OUT/.tcast/plan.json has every tensor of every shard;
nothing of OUT is visible until tcast finish.)";

void add_rule_flags(CLI::App& command, ConvertArguments& arguments) {
  repeatable(command.add_option("--rule", arguments.rules,
                                "type for tensors whose name matches; the first match wins; repeatable"))
      ->option_text("REGEX=DTYPE");
  repeatable(command.add_option("--rules", arguments.rule_files,
                                "more rules after those of --rule: YAML with the words of these options, or one rule a "
                                "line; # starts a comment"))
      ->option_text("FILE");
}

void add_loss_flags(CLI::App& command, ConvertArguments& arguments) {
  CLI::Option* strict = command.add_flag("--strict-loss", arguments.strict_loss,
                                         "fail if an element overflows, is clamped, or loses a NaN or an infinity, or "
                                         "if too many become zero (see below)");
  command
      .add_flag("--allow-loss", arguments.allow_loss,
                "convert also tensors more than half of whose nonzero elements become zero, with a warning (default: "
                "an error)")
      ->excludes(strict);
}

// Adds the options of the list, and those of the command's own that belong to one of them.
void add_request_options(CLI::App& command, ConvertArguments& arguments) {
  options::for_each(options::request_options, [&](const auto& option) {
    const std::string_view option_is = option.name;
    if (option_is == "to") {
      add_target(command, "--to", arguments.request, options::help_text(option))->option_text(value_name(option));
    }
    if (option_is == "rules") add_rule_flags(command, arguments);
    if (option_is == "report") {
      command
          .add_option("--report", arguments.report_path,
                      "measure what is lost, print a summary, write all of it as JSON")
          ->option_text("FILE.json");
    }
    if (option_is == "on_loss") add_loss_flags(command, arguments);
    if (option.flag == nullptr || (option.of_one_run && arguments.plan_only)) return;
    if constexpr (!std::is_same_v<typename std::decay_t<decltype(option)>::Type,
                                  std::vector<tensorcast::ConvertRule>>) {
      add_request_option(command, option, value_of(arguments.request, option));
    }
  });
  command.get_option("--output-layout")->excludes(command.get_option("--max-shard-size"));
  command.get_option("--exact")->needs(command.get_option("--respell"));
  command.get_option("--zero-limit")->needs(command.get_option("--strict-loss"));
}

// A checkpoint says all of this itself.
void add_file_formats(CLI::App& command, ConvertArguments& arguments) {
  add_input_layout(command, arguments.layout);
  command
      .add_option("--input-format", arguments.request.input_format,
                  "format of IN (default: by content and extension): " + format_names())
      ->option_text("FORMAT");
  command.add_option("--output-format", arguments.request.output_format, "format of OUT (default: by its extension)")
      ->option_text("FORMAT");
}

void add_conversion(CLI::App& command, Work& work, bool plan_only) {
  const auto arguments = std::make_shared<ConvertArguments>();
  arguments->plan_only = plan_only;
  ConvertRequest& request = arguments->request;

  command
      .add_option("IN", request.input,
                  plan_only ? "folder of the checkpoint, or its index"
                            : "file to read, - for standard input; its kind is known by its content and extension; or "
                              "a folder with a checkpoint, or its index")
      ->required();
  command
      .add_option("-o,--output", request.output,
                  plan_only ? "folder to write"
                            : "file to write, - for an npy on standard output; its extension says which kind; for a "
                              "checkpoint, a folder, or a file for one tensor or with --output-layout single")
      ->required()
      ->option_text("OUT");
  add_request_options(command, *arguments);
  if (!plan_only) add_file_formats(command, *arguments);
  add_threads(command, request.execution.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, request.options, true);
  const CLI::Option* out_of_range = command.get_option("--out-of-range");

  const CLI::Option* to = command.get_option("--to");
  command.callback([arguments, out_of_range, to, &work] {
    for (const std::string& text : to->results()) {
      const std::string named = (*tensorcast::parse_target(text)).recipe;
      if (named.empty() || named == arguments->request.recipe) continue;
      throw CLI::ValidationError("--recipe", fmt::format("{} names another recipe", text));
    }
    // Without the option the user may not know that integers wrap, so that is an error.
    arguments->request.refuse_wrap = out_of_range->count() == 0;
    check_usage(*arguments);
    work = [arguments] { return convert(*arguments); };
  });
}

}  // namespace

void add_convert(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("convert", "Convert the tensors of a file or a checkpoint to another type");
  command.footer(convert_examples);
  add_conversion(command, work, false);
}

void add_plan(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("plan", "Plan the conversion of a checkpoint, to run it shard by shard");
  command.footer(plan_examples);
  add_conversion(command, work, true);
}

}  // namespace tcast
