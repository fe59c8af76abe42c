// SPDX-License-Identifier: Apache-2.0
// The command lines of tcast convert and tcast plan.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "command.hpp"
#include "commands/convert.hpp"
#include "commands/output_paths.hpp"
#include "flags/convert_rules.hpp"
#include "flags/help_formatter.hpp"
#include "flags/options.hpp"
#include "flags/request_flags.hpp"
#include "process/standard_streams.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/spelling.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertRequest;
using tensorcast::Result;
namespace options = tensorcast::options;

constexpr const char* convert_examples = R"(Examples:
  tcast convert model.safetensors -o small.safetensors --to bfloat16
  tcast convert model.safetensors -o fp8.safetensors --to float8_e4m3fn --report fp8.json
      say what it did to the numbers, and write the details down
  tcast convert model.safetensors -o fp8.safetensors --to e4m3fn --exclude norm --rule 'lm_head=bf16' --dry-run
      show what would become what, and why; write nothing
  tcast convert weights.npy -o weights.safetensors --to f16 --verify
  tcast convert *.npy -o out/ --to float16
      several files into a folder, each under its own name; --output-format changes the kind
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
  tcast convert model-f16.gguf -o model-Q4_K_M.gguf --mix q4_k_m
      the types that llama-quantize chooses, for embedding and output, too
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
A tensor more than half of whose nonzero elements become zero is an error, as is a weight in which a scheme makes NaN or
infinity where there was none; --allow-loss converts it all the same.
A warning names a tensor if an element overflows to infinity, wraps around or was NaN and is not, if more than 1 % of
the elements are out of range, or if the signal to noise ratio is under 3 dB.
--strict-loss makes all that an error, and any element that is out of range, or infinite and then is not; of the nonzero
elements of a tensor, --zero-limit may become zero.
REGEX is RE2's syntax: it may match any part of a name, and has no backreferences and no lookaround.
OUT may be IN. OUT appears only when it is complete; nothing is left behind after an error or Ctrl-C.)";

bool asks_for_something(const ConvertArguments& arguments) {
  const ConvertRequest& request = arguments.request;
  const tensorcast::OutputFilter& filter = request.filter;
  return request.to != tensorcast::DType::undefined || !request.scheme.empty() || request.budget != 0.0 ||
         !arguments.rules.empty() || !arguments.rule_files.empty() || !request.include.empty() || request.single_file ||
         request.max_shard_bytes != 0 || !filter.only.empty() || !filter.drop.empty() || !filter.rename.empty() ||
         !request.respell.empty() || !request.mix.empty();
}

// Without reading: files are of one format if their extensions are equal.
bool cannot_be_a_change_of_format(const ConvertRequest& request) {
  const auto extension = [](const std::string& path) { return std::filesystem::path(path).extension(); };
  return tensorcast::is_checkpoint(request.input) || extension(request.input) == extension(request.output);
}

// Finds the outputs of files that are converted into a folder.
void choose_outputs(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  const std::vector<std::string>& inputs = arguments.inputs;
  request.input = inputs.front();
  const auto is_folder = [](const std::string& input) { return tensorcast::is_checkpoint(input); };
  if (inputs.size() == 1 && (!request.output.ends_with('/') || is_folder(request.input) || is_url(request.output))) {
    return;
  }
  for (const std::string& input : inputs) {
    if (is_folder(input))
      throw CLI::ValidationError("IN", fmt::format("{} is a checkpoint, which is converted alone", input));
    if (input == standard_stream) throw CLI::ValidationError("IN", "standard input is converted alone");
  }
  if (request.output == standard_stream) throw CLI::ValidationError("-o", "several files are converted into a folder");
  // Formats are called by their extensions, but for these.
  const std::string& format = request.output_format;
  const std::string extension = format.empty()             ? ""
                                : format == "tensor_proto" ? ".pb"
                                : format == "raw"          ? ".bin"
                                                           : "." + format;
  const Result<std::vector<std::string>> outputs = outputs_in(request.output, inputs, extension);
  if (!outputs) throw CLI::ValidationError("IN", complaint_of(outputs));
  arguments.outputs = *outputs;
}

void check_usage(ConvertArguments& arguments) {
  choose_outputs(arguments);
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
  if (request.output == standard_stream && !request.output_format.empty() && request.output_format != "npy") {
    throw CLI::ValidationError("--output-format", "only npy is written to standard output; -o FILE takes all formats");
  }
  if (!arguments.attestation.empty() && (request.output == standard_stream || !arguments.outputs.empty())) {
    throw CLI::ValidationError("--attest", "a statement is about one file or folder that has a name");
  }
  if (arguments.json && request.output == standard_stream) {
    throw CLI::ValidationError("--json", "standard output is taken by -o -");
  }
  const bool changes_format =
      arguments.outputs.empty() ? !cannot_be_a_change_of_format(request) : !request.output_format.empty();
  if (!asks_for_something(arguments) && !changes_format) {
    throw CLI::RequiredError("--to DTYPE or --rule REGEX=DTYPE");
  }
}

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
  repeatable(
      command.add_option(
          "--rules", arguments.rule_files,
          "more rules after those of --rule: YAML with the words of these and of the conversion options, or one rule a "
          "line; # starts a comment"))
      ->option_text("FILE");
}

void add_loss_flags(CLI::App& command, ConvertArguments& arguments) {
  CLI::Option* strict = command.add_flag("--strict-loss", arguments.strict_loss,
                                         "fail if an element overflows, is clamped, or loses a NaN or an infinity, or "
                                         "if too many become zero (see below)");
  command
      .add_flag("--allow-loss", arguments.allow_loss,
                "convert also tensors that are destroyed, as more than half of their nonzero elements become zero, "
                "with a warning (default: an error)")
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
      if (!arguments.plan_only) {
        command
            .add_option("--attest", arguments.attestation,
                        "write an in-toto statement of what was converted and how, which verify checks; in a folder "
                        "OUT its name is OUT/attestation.intoto.json")
            ->option_text("FILE");
      }
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
  command.get_option("--recipe")->transform(one_of(recipe_words()));
  command.get_option("--spelling")->transform(one_of(tensorcast::written_spellings()));
  command.get_option("--respell")->transform(one_of(tensorcast::written_spellings()));
}

// A checkpoint says all of this itself.
void add_file_formats(CLI::App& command, ConvertArguments& arguments) {
  add_input_layout(command, arguments.layout);
  command
      .add_option("--input-format", arguments.request.input_format,
                  "format of IN (default: by content and extension): " + format_names())
      ->option_text("FORMAT")
      ->transform(one_of(tensorcast::file_formats()));
  command.add_option("--output-format", arguments.request.output_format, "format of OUT (default: by its extension)")
      ->option_text("FORMAT")
      ->transform(one_of(tensorcast::file_formats()));
}

// The options by what they are for; -h shows the first ones of each group.
const std::vector<OptionGroup>& convert_groups() {
  static const std::vector<OptionGroup> groups = {
      {"What is converted",
       {"--to", "--rule", "--include", "--exclude", "--keep-rank", "--preset"},
       {"--rules", "--keep-smaller", "--allow-odd", "--raw-codes", "--accept", "--from", "--shape", "--raw",
        "--input-format"}},
      {"How weights are quantized",
       {"--budget", "--candidates", "--recipe", "--group-size", "--importance"},
       {"--spelling", "--force-layout", "--activations", "--strict-schemes", "--compute-dtype", "--symmetric",
        "--no-symmetric", "--power-of-two-scales", "--fuse", "--nonfinite", "--clip", "--convrot"}},
      {"What is written",
       {"--output", "--only", "--drop", "--rename", "--max-shard-size", "--report"},
       {"--attest", "--output-format", "--output-layout", "--skip-files", "--respell", "--mix", "--exact", "--parents",
        "--json", "--quiet", "--threads"}},
      {"Safety", {"--dry-run", "--verify", "--strict-loss", "--allow-loss", "--force"}, {"--zero-limit"}}};
  return groups;
}

void add_conversion(CLI::App& command, Work& work, bool plan_only) {
  const auto arguments = std::make_shared<ConvertArguments>();
  arguments->plan_only = plan_only;
  ConvertRequest& request = arguments->request;

  CLI::Option* inputs = command.add_option(
      "IN", arguments->inputs,
      plan_only ? "folder of the checkpoint, or its index"
                : "file to read, - for standard input; its kind is known by its content and extension; or "
                  "several files; or a folder with a checkpoint, or its index");
  inputs->required();
  if (plan_only) inputs->expected(1);
  command
      .add_option("-o,--output", request.output,
                  plan_only ? "folder to write"
                            : "file to write, - for an npy on standard output; its extension says which kind; for "
                              "several files, a folder (one file: OUT/); for a checkpoint, a folder, or a file for one "
                              "tensor or with --output-layout single")
      ->required()
      ->option_text("OUT");
  add_request_options(command, *arguments);
  if (!plan_only) add_file_formats(command, *arguments);
  add_threads(command, request.execution.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, request.options, true);
  group_options(command, convert_groups());
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
    work = [arguments] { return convert_all(*arguments); };
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
