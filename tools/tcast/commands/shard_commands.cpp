// SPDX-License-Identifier: Apache-2.0
// tcast run-shard and tcast finish: the steps of a planned conversion after tcast plan.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "commands/shard_part.hpp"
#include "dtype/text_parts.hpp"
#include "flags/options.hpp"
#include "print/checkpoint_summary.hpp"
#include "print/conversion_summary.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/progress_bar.hpp"
#include "process/terminal.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertOutcome;
using tensorcast::Result;

constexpr const char* run_shard_examples = R"(Examples:
  tcast run-shard OUT                        all shards that are not done
  tcast run-shard OUT 0 3                    shards 0 and 3 of the plan
  tcast run-shard OUT --shard-of 2/8         every eighth shard from shard 2 on
  srun --array=0-7 tcast run-shard OUT       the same of each task of a SLURM array
  torchrun --no-python --nproc-per-node 4 tcast run-shard OUT
  tcast run-shard OUT --shard-of auto/8      in a Kubernetes indexed Job of 8 completions
Without numbers and --shard-of, SLURM_ARRAY_TASK_ID, RANK and WORLD_SIZE, or JOB_COMPLETION_INDEX choose the shards.
A shard that is done is left alone: to run a command twice does no harm.)";

constexpr const char* finish_examples = R"(Example:
  tcast finish OUT
Checks that every shard is done, writes the indexes, configs and SHA256SUMS, copies the other files, and gives all files
their names. Only then is OUT a checkpoint.)";

struct ShardArguments {
  tensorcast::ShardRequest request;
  std::string part;
  bool json = false;
  bool quiet = false;
};

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Json shards_json(const std::string& output, const ConvertOutcome& outcome) {
  Json json = {{"output", output}};
  add_checkpoint_json(json, outcome);
  return json;
}

int run_shard(ShardArguments& arguments) {
  tensorcast::ShardRequest& request = arguments.request;
  std::string source;
  if (!arguments.part.empty()) {
    const Result<ShardPart> part = parse_shard_part(arguments.part, environment_variable);
    if (!part) return misuse(part.error().describe());
    request.first = part->first;
    request.step = part->step;
    source = part->source;
  } else if (request.shards.empty()) {
    const Result<std::optional<ShardPart>> part = part_of_environment(environment_variable);
    if (!part) return fail(part.error());
    if (part->has_value()) {
      request.first = (*part)->first;
      request.step = (*part)->step;
      source = (*part)->source;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const CancellableWork cancellable;
  const Result<ConvertOutcome> outcome = with_progress(request, arguments.quiet, tensorcast::convert_shards);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome && outcome.error().code == tensorcast::ErrorCode::cancelled) {
    return report_interruption(outcome.error().hint);
  }
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text(shards_json(request.output, *outcome)));
    return exit_done;
  }
  if (arguments.quiet) return exit_done;
  std::uint64_t bytes = 0;
  std::size_t before = 0;
  for (const tensorcast::ShardOutcome& shard : outcome->shards) {
    bytes += shard.bytes_in + shard.bytes_out;
    before += shard.done_before ? 1 : 0;
    print(fmt::format("{}  {}{}\n", shard.sha256, printable(shard.file), shard.done_before ? " (done before)" : ""));
  }
  const std::string part = request.step == 1 ? ""
                                             : fmt::format(" (part {}/{}{}{})", request.first, request.step,
                                                           source.empty() ? "" : " by ", source);
  print(fmt::format("{} converted{}{}, {} in {}\n", count_text(outcome->shards.size() - before, "shard"),
                    before == 0 ? "" : fmt::format(", {} done before", before), part, bytes_text(bytes),
                    duration_text(seconds)));
  return exit_done;
}

int finish(const ShardArguments& arguments) {
  const Result<ConvertOutcome> outcome = tensorcast::finish_checkpoint(arguments.request.output);
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text(shards_json(arguments.request.output, *outcome)));
  } else if (!arguments.quiet) {
    print(fmt::format("{}: {}, {}; SHA256SUMS has their hashes\n", printable(arguments.request.output),
                      count_text(outcome->shards.size(), "shard"), tensor_counts(*outcome)));
  }
  return exit_done;
}

}  // namespace

void add_run_shard(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("run-shard", "Convert shards of a planned checkpoint");
  command.footer(run_shard_examples);
  const auto arguments = std::make_shared<ShardArguments>();
  command.add_option("OUT", arguments->request.output, "the folder that `tcast plan` made, or its plan.json")
      ->required();
  const auto read = [](const std::string& word, std::vector<std::size_t>& numbers) {
    const std::optional<std::size_t> number = tensorcast::parse_whole<std::size_t>(word);
    if (number) numbers.push_back(*number);
    return number ? std::string() : fmt::format("\"{}\" is not the number of a shard, from 0", printable(word));
  };
  CLI::Option* shards =
      add_read_all(command, "SHARD", arguments->request.shards, "numbers of shards, from 0", read)->expected(-1);
  command
      .add_option("--shard-of", arguments->part,
                  "part I of N of the shards, I from 0; auto takes both from the environment, auto/N only I")
      ->option_text("I/N|auto|auto/N")
      ->excludes(shards);
  add_threads(command, arguments->request.execution.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] { work = [arguments] { return run_shard(*arguments); }; });
}

void add_finish(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("finish", "Complete a planned checkpoint whose shards are converted");
  command.footer(finish_examples);
  const auto arguments = std::make_shared<ShardArguments>();
  command.add_option("OUT", arguments->request.output, "the folder that `tcast plan` made, or its plan.json")
      ->required();
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] { work = [arguments] { return finish(*arguments); }; });
}

}  // namespace tcast
