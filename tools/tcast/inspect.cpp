// tcast inspect: what is inside a file, and how its tensors would fare as other types.
#include <memory>

#include <fmt/format.h>

#include "command.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "printable.hpp"
#include "report_json.hpp"
#include "standard_streams.hpp"
#include "table.hpp"
#include "terminal.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::Family;
using tensorcast::FileSummary;
using tensorcast::name;
using tensorcast::Result;
using tensorcast::TensorStats;
using tensorcast::TensorSummary;

struct InspectArguments {
  std::string path;
  InputLayout layout;
  std::optional<tensorcast::RawLayout> raw;
  bool stats = false;
  std::vector<DType> candidates = {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};
  tensorcast::CastOptions options;
  bool json = false;
  bool quiet = false;
};

// A tensor and, where it was asked for and has numbers, its statistics.
struct Inspected {
  TensorSummary summary;
  std::optional<TensorStats> stats;
};

constexpr const char* inspect_examples = R"(Examples:
  tcast inspect model.safetensors
  tcast inspect model.safetensors --stats
      ranges, NaN, infinities, zeros, and what bfloat16, float16 and float8 would do to each tensor
  tcast inspect model.safetensors --stats --candidates e4m3fn,e8m0 --scale 0.5
  tcast inspect weights.npy --json | jq '.tensors[].dtype'
  tcast inspect dump.bin --raw --from bf16 --shape 4096,4096)";

std::string shown_name(const TensorSummary& tensor) { return tensor.name.empty() ? "-" : printable(tensor.name); }

// The file's own name where it is none of the 24 types: such tensors can be listed and copied, no more.
std::string_view shown_type(const TensorSummary& tensor) {
  return tensor.foreign_dtype.empty() ? name(tensor.dtype) : std::string_view(tensor.foreign_dtype);
}

std::string tensors_table(const std::vector<Inspected>& tensors) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"bytes", Align::right}});
  for (const auto& [summary, stats] : tensors) {
    table.add_row(
        {shown_name(summary), std::string(shown_type(summary)), shape_text(summary.shape), grouped(summary.bytes)});
  }
  return table.to_string();
}

std::string stats_table(const std::vector<Inspected>& tensors) {
  Table table({{"tensor"},
               {"elements", Align::right},
               {"min", Align::right},
               {"max", Align::right},
               {"smallest", Align::right},
               {"zeros", Align::right},
               {"NaN", Align::right},
               {"Inf", Align::right}});
  for (const auto& [summary, stats] : tensors) {
    if (!stats) continue;
    const bool has_finite = stats->count > stats->nan + stats->infinite;
    const bool has_nonzero = stats->count > stats->nan + stats->infinite + stats->zero;
    table.add_row({shown_name(summary), grouped(stats->count), has_finite ? short_number(stats->min) : "-",
                   has_finite ? short_number(stats->max) : "-",
                   has_nonzero ? short_number(stats->smallest_nonzero_magnitude) : "-", grouped(stats->zero),
                   grouped(stats->nan), grouped(stats->infinite)});
  }
  return table.empty() ? "" : "\n" + table.to_string();
}

std::string candidates_table(const std::vector<Inspected>& tensors) {
  Table table({{"tensor"},
               {"as"},
               {"overflow", Align::right},
               {"underflow", Align::right},
               {"inexact", Align::right},
               {"max rel error", Align::right},
               {"SNR", Align::right}});
  for (const auto& [summary, stats] : tensors) {
    if (!stats) continue;
    std::string shown = shown_name(summary);
    for (const auto& [candidate, report] : stats->candidates) {
      table.add_row({std::move(shown), std::string(name(candidate)),
                     grouped(report.overflowed + report.saturated + report.wrapped),
                     grouped(report.underflowed_to_zero), grouped(report.inexact), short_number(report.max_rel_error),
                     decibel_text(report.snr_db())});
      shown.clear();  // the name stands once, over its candidates
    }
  }
  return table.empty() ? "" : "\n" + table.to_string();
}

std::string totals_line(const FileSummary& file) {
  std::uint64_t bytes = 0;
  for (const TensorSummary& tensor : file.tensors) bytes += tensor.bytes;
  return fmt::format("\n{}: {}, {}\n", file.format, count_text(file.tensors.size(), "tensor"), bytes_text(bytes));
}

std::string metadata_table(const FileSummary& file) {
  constexpr std::size_t longest_value = 80;
  if (file.metadata.empty()) return "";
  Table table({{"metadata"}, {""}});
  for (const auto& [key, value] : file.metadata) {
    table.add_row({printable(key), abbreviated(printable(value), longest_value)});
  }
  return "\n" + table.to_string();
}

Json inspected_json(const FileSummary& file, const std::vector<Inspected>& tensors) {
  Json list = Json::array();
  for (const auto& [summary, stats] : tensors) {
    Json entry = {{"name", summary.name}, {"dtype", shown_type(summary)}, {"shape", Json::array()}};
    for (const std::int64_t size : summary.shape) entry["shape"].push_back(size);
    entry["bytes"] = summary.bytes;
    if (stats) {
      Json candidates = Json::object();
      for (const auto& [candidate, report] : stats->candidates) {
        candidates[std::string(name(candidate))] = to_json(report);
      }
      entry["stats"] = {{"count", stats->count},
                        {"min", finite_or_null(stats->min)},
                        {"max", finite_or_null(stats->max)},
                        {"smallest_nonzero_magnitude", finite_or_null(stats->smallest_nonzero_magnitude)},
                        {"zero", stats->zero},
                        {"negative", stats->negative},
                        {"nan", stats->nan},
                        {"infinite", stats->infinite},
                        {"candidates", std::move(candidates)}};
    }
    list.push_back(std::move(entry));
  }
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata) metadata[key] = value;
  return {{"format", file.format}, {"tensors", std::move(list)}, {"metadata", std::move(metadata)}};
}

bool has_numbers(const TensorSummary& tensor) { return tensorcast::family(tensor.dtype) != Family::text; }

int inspect(InspectArguments& arguments) {
  if (arguments.path == standard_stream) {
    Result<std::string> path = standard_input_as_file();
    if (!path) return fail(path.error());
    arguments.path = *std::move(path);
  }
  const Result<FileSummary> file = tensorcast::inspect_file(arguments.path, arguments.raw, arguments.layout.from);
  if (!file) return fail(file.error());

  std::vector<Inspected> tensors;
  std::vector<std::string> measured;  // names of those that have numbers
  for (const TensorSummary& summary : file->tensors) {
    tensors.push_back({.summary = summary, .stats = {}});
    if (has_numbers(summary)) measured.push_back(summary.name);
  }
  if (arguments.stats) {
    Result<std::vector<TensorStats>> stats = tensorcast::file_stats(
        arguments.path, measured, arguments.candidates, arguments.options, arguments.raw, arguments.layout.from);
    if (!stats) return fail(stats.error());
    auto next = stats->begin();
    for (Inspected& inspected : tensors) {
      if (has_numbers(inspected.summary)) inspected.stats = std::move(*next++);
    }
  }

  if (arguments.json) {
    print(json_text(inspected_json(*file, tensors)));
  } else if (!arguments.quiet) {
    print(tensors_table(tensors) + stats_table(tensors) + candidates_table(tensors) + metadata_table(*file) +
          totals_line(*file));
  }
  return exit_done;
}

}  // namespace

void add_inspect(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("inspect", "List the tensors of a file");
  command.footer(inspect_examples);
  const auto arguments = std::make_shared<InspectArguments>();
  arguments->options.threads = 0;

  command.add_option("FILE", arguments->path, "file to look into, - for standard input")->required();
  CLI::Option* stats = command.add_flag(
      "--stats", arguments->stats, "read the data too: ranges, NaN, Inf, zeros, and how each candidate would fare");
  add_dtypes(command, "--candidates", arguments->candidates,
             "types to try (default float16,bfloat16,float8_e4m3fn,float8_e5m2)")
      ->needs(stats);
  add_input_layout(command, arguments->layout);
  add_threads(command, arguments->options.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, arguments->options);

  command.callback([arguments, &work] {
    arguments->raw = arguments->layout.raw_layout();
    std::erase(arguments->candidates, DType::string);  // has no losses to measure; "all" brings it along
    if (arguments->candidates.empty()) throw CLI::ValidationError("--candidates", "a numeric type is needed");
    work = [arguments] { return inspect(*arguments); };
  });
}

}  // namespace tcast
