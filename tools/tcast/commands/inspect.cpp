// SPDX-License-Identifier: Apache-2.0
// tcast inspect: lists the contents of a file, and the losses of its tensors as other types.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "flags/convert_rules.hpp"
#include "flags/options.hpp"
#include "print/budget_plan.hpp"
#include "print/difference_text.hpp"
#include "print/inspected_text.hpp"
#include "print/quantized_text.hpp"
#include "print/recipes_text.hpp"
#include "print/report_file.hpp"
#include "print/report_json.hpp"
#include "print/scheme_text.hpp"
#include "print/stats_text.hpp"
#include "print/text_table.hpp"
#include "process/error_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/standard_streams.hpp"
#include "process/terminal.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/onnx.hpp"
#include "tensorcast/tensor.hpp"
#include "tensorcast/whole_file.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::Family;
using tensorcast::FileSummary;
using tensorcast::name;
using tensorcast::Result;
using tensorcast::Tensor;
using tensorcast::TensorStats;
using tensorcast::TensorSummary;

enum class Order { file, bytes, name, snr };

// More tensors than this are summarized by type unless the user asks for a list.
constexpr std::size_t most_listed = 40;

struct InspectArguments {
  std::vector<std::string> paths;
  std::string path;  // the one that is looked into
  InputLayout layout;
  std::optional<tensorcast::RawLayout> raw;
  std::vector<std::string> include;
  Order order = Order::file;
  bool all = false;
  bool stats = false;
  Candidates candidates = {.types = {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}};
  bool has_candidates = false;  // --candidates was given
  std::string importance;
  std::string html;     // --html: the page that is written
  double budget = 0.0;  // --budget, in bits; 0: none
  std::string plan;     // --plan: the rules that are written
  tensorcast::CastOptions options;
  tensorcast::Execution execution;
  std::string against;  // --against: what the weights were quantized from
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* inspect_examples = R"(Examples:
  tcast inspect model.safetensors
  tcast inspect model.safetensors --stats
      ranges, NaN, infinities, zeros, and what bfloat16, float16 and float8 would do to each tensor
  tcast inspect model.safetensors --stats --candidates e4m3fn,e8m0 --scale 0.5
  tcast inspect model.safetensors --include '^layers\.0\.' --sort bytes
  tcast inspect model.safetensors --stats --candidates e4m3fn --sort snr
      the tensors that float8_e4m3fn would hurt most come first
  tcast inspect folder/ --stats --candidates nvfp4,mxfp4:even,q4_k,float8_e4m3fn --html ranking.html
      what quantization to each scheme would leave of each tensor, the worst first
  tcast inspect folder/ --stats --candidates nvfp4,mxfp4,mxfp6,mxfp8 --budget 4.5bits --plan rules.yaml
  tcast inspect *.npy *.safetensors
  tcast inspect weights.npy --json | jq '.tensors[].dtype'
  tcast inspect dump.bin --raw --from bf16 --shape 4096,4096
  tcast inspect arrays.npz --from 'weight=float8_e4m3fn'
  tcast inspect model.onnx              the initializers of a model
  tcast inspect folder/                 a checkpoint: totals per type and per kind of layer
  tcast inspect folder/ --tensors --sort bytes
  tcast inspect quantized/ --against folder/
      the recipe that made each weight: all bytes are compared with those of every recipe
Files of more than 40 tensors are summed up by type, and checkpoints by type and kind of layer; --tensors, --include, --sort or --stats lists tensors.)";

// Tells what becomes of the infinities of `stats` and which numbers become infinite or NaN.
Specials specials_of(const TensorStats& stats, DType candidate, const tensorcast::CastReport& report,
                     const tensorcast::CastOptions& options) {
  const Tensor infinity = Tensor::own(std::vector{std::numeric_limits<double>::infinity()}).value();
  const Result<Tensor> code = tensorcast::cast(infinity, candidate, options);
  const Result<Tensor> number = code ? tensorcast::cast(*code, DType::float64) : code;
  // Unless an option makes infinity an error.
  const std::optional<double> back = number ? std::optional(number->as<double>().value()[0]) : std::nullopt;
  const std::uint64_t lost = back && !std::isinf(*back) ? stats.infinite : 0;
  const std::uint64_t infinite_to_nan = back && std::isnan(*back) ? stats.infinite : 0;
  const std::uint64_t finite_to_nan = report.nan_made - std::min(report.nan_made, infinite_to_nan);
  return {.infinities_made = report.overflowed - std::min(report.overflowed, finite_to_nan),
          .infinities_lost = lost,
          .nan_made = report.nan_made,
          .nan_lost = report.nan_lost};
}

// Orders tensors by what the worst candidate does: infinities and NaN made or lost, then the smallest signal-to-noise
// ratio; tensors without candidates come last.
std::pair<double, double> harm(const Inspected& tensor) {
  std::uint64_t most = 0;
  double worst = std::numeric_limits<double>::infinity();
  if (!tensor.stats) return {1.0, worst};
  for (const Specials& specials : tensor.specials) {
    most = std::max(most, specials.infinities_made + specials.infinities_lost + specials.nan_made + specials.nan_lost);
  }
  for (const auto& [candidate, report] : tensor.stats->candidates) worst = std::min(worst, report.snr_db());
  for (const tensorcast::SchemeFit& fit : tensor.stats->schemes) {
    worst = std::min(worst, fit.problem.empty() ? fit.snr_db() : worst);
  }
  return {-static_cast<double>(most), worst};
}

void sort(std::vector<Inspected>& tensors, Order order) {
  const auto by = [&](auto before) { std::stable_sort(tensors.begin(), tensors.end(), before); };
  switch (order) {
    case Order::file:
      return;
    case Order::bytes:
      return by([](const Inspected& a, const Inspected& b) { return a.summary.bytes > b.summary.bytes; });
    case Order::name:
      return by([](const Inspected& a, const Inspected& b) { return a.summary.name < b.summary.name; });
    case Order::snr:
      return by([](const Inspected& a, const Inspected& b) { return harm(a) < harm(b); });
  }
}

Json inspected_json(const FileSummary& file, const std::vector<Inspected>& tensors) {
  Json list = Json::array();
  for (const auto& [summary, stats, specials, file_path] : tensors) {
    Json entry = {{"name", summary.name}, {"dtype", shown_type(summary)}, {"shape", Json::array()}};
    for (const std::int64_t size : summary.shape) entry["shape"].push_back(size);
    entry["bytes"] = summary.bytes;
    if (!summary.problem.empty()) entry["problem"] = summary.problem;
    if (stats) {
      Json candidates = Json::object();
      for (std::size_t i = 0; i < stats->candidates.size(); ++i) {
        const auto& [candidate, report] = stats->candidates[i];
        Json fare = to_json(report);
        fare["infinities_made"] = specials[i].infinities_made;
        fare["infinities_lost"] = specials[i].infinities_lost;
        candidates[std::string(name(candidate))] = std::move(fare);
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
      entry["candidates"] = candidates_json(*stats);
    }
    list.push_back(std::move(entry));
  }
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata) metadata[key] = value;
  return {{"format", file.format}, {"tensors", std::move(list)}, {"metadata", std::move(metadata)}};
}

bool has_numbers(const TensorSummary& tensor) {
  return tensorcast::is_castable(tensor.dtype) && tensor.dtype != DType::string;
}

// Fills the statistics of the tensors that have numbers and for which `chosen` holds.
template <class Chosen>
Result<void> measure(const InspectArguments& arguments, std::span<const DType> candidates, Chosen chosen,
                     std::vector<Inspected>& tensors) {
  std::map<std::string, std::vector<Inspected*>> by_file;
  for (Inspected& tensor : tensors) {
    if (!has_numbers(tensor.summary) || !chosen(tensor.summary)) continue;
    by_file[tensor.file.empty() ? arguments.path : tensor.file].push_back(&tensor);
  }
  for (const auto& [path, measured] : by_file) {
    std::vector<std::string> names;
    for (const Inspected* tensor : measured) names.push_back(tensor->summary.name);
    std::vector<TensorStats> stats = TRY(tensorcast::tensor_stats({.input = path,
                                                                   .tensors = names,
                                                                   .candidates = {candidates.begin(), candidates.end()},
                                                                   .schemes = arguments.candidates.schemes,
                                                                   .importance = arguments.importance,
                                                                   .options = arguments.options,
                                                                   .execution = arguments.execution,
                                                                   .raw = arguments.raw,
                                                                   .from = arguments.layout.from}));
    for (std::size_t i = 0; i < measured.size(); ++i) measured[i]->stats = std::move(stats[i]);
  }
  return {};
}

// Requested types are tried on every tensor; by default none is tried on integers and bools.
Result<void> measure_all(const InspectArguments& arguments, std::vector<Inspected>& tensors) {
  const auto tried = [&](const TensorSummary& tensor) {
    return arguments.has_candidates || tensorcast::family(tensor.dtype) == Family::floating;
  };
  TRY(measure(arguments, arguments.candidates.types, tried, tensors));
  return measure(
      arguments, {}, [&](const TensorSummary& tensor) { return !tried(tensor); }, tensors);
}

// `files` has the path of each tensor's file, or is empty.
Result<std::vector<Inspected>> inspect_tensors(const InspectArguments& arguments, const FileSummary& file,
                                               const std::vector<std::string>& files) {
  std::vector<std::size_t> chosen(file.tensors.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  if (!arguments.include.empty()) chosen = TRY(tensorcast::matching_tensors(file, arguments.include));
  std::vector<Inspected> tensors;
  for (const std::size_t index : chosen) {
    tensors.push_back({.summary = file.tensors[index],
                       .stats = {},
                       .specials = {},
                       .file = files.empty() ? std::string() : files[index]});
  }
  if (arguments.stats) {
    TRY(measure_all(arguments, tensors));
    for (Inspected& tensor : tensors) {
      if (!tensor.stats) continue;
      for (const auto& [candidate, report] : tensor.stats->candidates) {
        tensor.specials.push_back(specials_of(*tensor.stats, candidate, report, arguments.options));
      }
    }
  }
  sort(tensors, arguments.order);
  return tensors;
}

// What only a checkpoint has.
void add_checkpoint_json(Json& json, const tensorcast::CheckpointSummary& checkpoint,
                         const std::vector<Inspected>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    json["tensors"][i]["file"] = tensors[i].file;
    json["tensors"][i]["kind"] =
        name(tensorcast::tensor_kind(tensors[i].summary.name, tensors[i].summary.shape.size()));
  }
  json["shards"] = Json::array();
  for (const tensorcast::CheckpointFile& shard : checkpoint.shards) {
    json["shards"].push_back({{"file", shard.name}, {"bytes", shard.bytes}, {"tensors", shard.tensors}});
  }
  json["indexes"] = checkpoint.indexes;
  json["other_files"] = Json::array();
  for (const tensorcast::CheckpointFile& other : checkpoint.other_files) {
    json["other_files"].push_back({{"file", other.name}, {"bytes", other.bytes}});
  }
}

// What is read, which the page must not replace.
std::vector<tensorcast::PathUse> inputs_of(const InspectArguments& arguments) {
  const bool folder = std::filesystem::is_directory(arguments.path);
  return {{.path = arguments.path, .noun = "input", .folder = folder}};
}

// Writes the files of --html and --plan. The plan refers to `tensors`.
Result<BudgetPlan> write_ranking(const InspectArguments& arguments, const std::vector<Inspected>& tensors) {
  BudgetPlan plan;
  if (!arguments.html.empty()) {
    const std::filesystem::path path = std::filesystem::absolute(arguments.path).lexically_normal();
    const std::string title = path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
    TRY(write_report(arguments.html, inputs_of(arguments), candidates_page(title, tensors), arguments.overwrite,
                     "page"));
  }
  if (arguments.budget == 0.0) return plan;
  Result<BudgetPlan> planned = plan_budget(tensors, arguments.budget);
  if (!planned || arguments.plan.empty()) return planned;
  TRY(write_report(arguments.plan, inputs_of(arguments), plan_rules(*planned), arguments.overwrite, "plan"));
  return planned;
}

Result<std::vector<tensorcast::LayerRecipes>> recipes_against(const InspectArguments& arguments) {
  if (arguments.against.empty()) return std::vector<tensorcast::LayerRecipes>();
  return detect_recipes(arguments.path, arguments.against, arguments.importance, arguments.execution, arguments.quiet);
}

bool is_onnx_model(const InspectArguments& arguments) {
  return !arguments.raw && CLI::detail::to_lower(std::filesystem::path(arguments.path).extension().string()) == ".onnx";
}

Result<void> check_no_source_types(const InspectArguments& arguments, std::string_view what) {
  if (arguments.layout.from.empty()) return {};
  return tensorcast::in_file(arguments.path,
                             tensorcast::unsupported(fmt::format("--from is not for {}", what), "leave --from out"));
}

// Initializers of a model are listed only; `tcast onnx` has what reads and changes them.
Result<FileSummary> inspect_model(const InspectArguments& arguments) {
  if (arguments.stats) {
    return tensorcast::in_file(
        arguments.path,
        tensorcast::unsupported(
            "--stats does not read ONNX models",
            "`tcast onnx convert MODEL --to TYPE --dry-run --json` counts what overflows and underflows"));
  }
  TRY(check_no_source_types(arguments, "ONNX models, which name their types"));
  return tensorcast::onnx::list_initializers(arguments.path);
}

// What a file or a checkpoint has, and what was measured and chosen.
struct Inspection {
  FileSummary file;
  std::vector<std::string> paths = {};  // of each tensor's file, in a checkpoint
  std::optional<tensorcast::CheckpointSummary> checkpoint = {};
  std::string other_data = {};  // JSON; not parsed, as it may have integers of thousands of digits
  std::vector<Inspected> tensors = {};
  BudgetPlan plan = {};  // refers to `tensors`
  std::vector<tensorcast::LayerRecipes> recipes = {};
};

Result<Inspection> read_folder(const InspectArguments& arguments) {
  TRY(check_no_source_types(arguments, "checkpoints, whose files say the types of their tensors"));
  tensorcast::CheckpointSummary checkpoint = TRY(tensorcast::inspect_checkpoint(arguments.path));
  const std::string folder = std::filesystem::is_directory(arguments.path)
                                 ? arguments.path
                                 : std::filesystem::absolute(arguments.path).parent_path().string();
  Inspection found;
  found.file.format = "checkpoint";
  for (const tensorcast::CheckpointTensor& tensor : checkpoint.tensors) {
    found.file.tensors.push_back(tensor.summary);
    found.paths.push_back(folder + "/" + tensor.file);
  }
  found.file.layers = checkpoint.layers;
  found.file.warnings = checkpoint.warnings;
  found.file.notes = checkpoint.notes;
  found.checkpoint = std::move(checkpoint);
  return found;
}

Result<Inspection> read_file(InspectArguments& arguments) {
  if (arguments.path == standard_stream) arguments.path = TRY(standard_input_as_file());
  Inspection found;
  found.file =
      TRY(is_onnx_model(arguments)
              ? inspect_model(arguments)
              : tensorcast::inspect({.input = arguments.path, .raw = arguments.raw, .from = arguments.layout.from}));
  if (found.file.format == "pytorch") found.other_data = one_line(TRY(tensorcast::read_other_data(arguments.path)));
  return found;
}

Result<Inspection> find_all(InspectArguments& arguments) {
  for (const auto& [path, noun] : {std::pair(arguments.html, "page"), std::pair(arguments.plan, "plan")}) {
    if (!path.empty()) TRY(check_report_path(path, inputs_of(arguments), arguments.overwrite, noun));
  }
  const bool is_folder = tensorcast::is_checkpoint(arguments.path);
  Inspection found = TRY(is_folder ? read_folder(arguments) : read_file(arguments));
  Result<std::vector<Inspected>> tensors = inspect_tensors(arguments, found.file, found.paths);
  if (!tensors && !is_folder && tensors.error().file.empty()) tensors.error().file = arguments.path;
  found.tensors = TRY(std::move(tensors));
  found.plan = TRY(write_ranking(arguments, found.tensors));
  found.recipes = TRY(recipes_against(arguments));
  return found;
}

Result<Inspection> look_into(InspectArguments& arguments, const std::string& path) {
  arguments.path = path;
  Result<Inspection> found = find_all(arguments);
  if (!found && path == standard_stream) found.error().file = path;
  return found;
}

std::string inspection_json(const InspectArguments& arguments, const Inspection& found) {
  Json json = inspected_json(found.file, found.tensors);
  if (arguments.paths.size() > 1) json["file"] = arguments.path;
  if (found.checkpoint) add_checkpoint_json(json, *found.checkpoint, found.tensors);
  add_layers_json(json, found.file);
  if (!arguments.against.empty()) add_recipes_json(json, found.recipes);
  if (!found.plan.weights.empty()) add_plan_json(json, found.plan);
  return found.other_data.empty() ? json_text(json) : json_text_with(json, "other_data", found.other_data);
}

std::string inspection_text(const InspectArguments& arguments, const Inspection& found) {
  const bool wants_list =
      arguments.all || arguments.stats || !arguments.include.empty() || arguments.order != Order::file;
  const bool listed = wants_list || (!found.checkpoint && found.tensors.size() <= most_listed);
  const std::string list = tensors_table(found.tensors) + stats_table(found.tensors) + candidates_table(found.tensors) +
                           schemes_table(found.tensors);
  std::string text = found.checkpoint ? types_table(found.tensors) + kinds_table(found.tensors)
                     : listed         ? list
                                      : types_table(found.tensors);
  text += layers_text(found.file, arguments.all);
  if (!arguments.against.empty()) {
    const bool all_layers = arguments.all || (!found.checkpoint && found.file.layers.size() <= most_listed);
    text += recipes_text(found.recipes, all_layers, !arguments.importance.empty());
  }
  if (found.checkpoint && listed) text += "\n" + list;
  if (!found.plan.weights.empty()) text += plan_text(found.plan);
  if (!found.checkpoint) {
    text += problems_text(found.tensors) + metadata_table(found.file) + other_data_text(found.other_data);
  }
  text += totals_line(found.file, found.tensors);
  if (found.checkpoint) {
    const std::size_t indexes = found.checkpoint->indexes.size();
    text += fmt::format("{}, {}, {}\n", count_text(found.checkpoint->shards.size(), "shard"),
                        indexes == 1 ? "1 index" : fmt::format("{} indexes", indexes),
                        count_text(found.checkpoint->other_files.size(), "other file"));
  }
  if (listed) return text;
  return text + fmt::format("{} lists the tensors, --include REGEX those whose name matches\n",
                            found.checkpoint ? "--tensors" : "--all");
}

// A file that cannot be read does not hide the others. As JSON, a list of what each gives.
int inspect_several(InspectArguments& arguments) {
  std::string json;
  int status = exit_done;
  for (std::size_t i = 0; i < arguments.paths.size(); ++i) {
    const bool is_first = i == 0;
    const std::string& path = arguments.paths[i];
    Result<Inspection> found = look_into(arguments, path);
    if (!found && found.error().code == tensorcast::ErrorCode::cancelled) {
      return report_interruption("the rest was not looked at");
    }
    if (!found) {
      const tensorcast::Error error = tensorcast::in_file(path, std::move(found).error());
      report_error(error);
      status = exit_failed;
      if (arguments.json)
        json += (is_first ? "[\n" : ",\n") + json_text({{"file", path}, {"error", error_json(error)}});
    } else if (arguments.json) {
      json += (is_first ? "[\n" : ",\n") + inspection_json(arguments, *found);
    } else if (!arguments.quiet) {
      print(fmt::format("{}{}:\n{}", is_first ? "" : "\n", printable(path), inspection_text(arguments, *found)));
    }
  }
  if (arguments.json) print(json + "]\n");
  return status;
}

int inspect(InspectArguments& arguments) {
  if (arguments.paths.size() > 1) return inspect_several(arguments);
  const Result<Inspection> found = look_into(arguments, arguments.paths.front());
  if (!found && found.error().code == tensorcast::ErrorCode::cancelled) {
    return report_interruption("the rest was not compared");
  }
  if (!found) return fail(found.error());
  if (arguments.json) {
    print(inspection_json(arguments, *found));
  } else if (!arguments.quiet) {
    print(inspection_text(arguments, *found));
  }
  return exit_done;
}

}  // namespace

void add_inspect(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("inspect", "List the tensors of a file");
  command.footer(inspect_examples);
  const auto arguments = std::make_shared<InspectArguments>();

  command.add_option("FILE", arguments->paths, "files to look into, - for standard input")->required();
  add_patterns(command, "--include", arguments->include, "only tensors whose name matches; repeatable");
  CLI::Option* sort = add_choice<Order>(
      command, "--sort", arguments->order,
      {{"file", Order::file}, {"bytes", Order::bytes}, {"name", Order::name}, {"snr", Order::snr}},
      "order of the tensors: as in the file (default), largest first, by name, or first those with infinities and "
      "NaN made or lost, then the worst signal to noise ratio, which needs --stats and is the default with schemes");
  command.add_flag("--tensors,--all", arguments->all,
                   "list the tensors even if there are more than 40, or if it is a checkpoint");
  CLI::Option* stats = command.add_flag(
      "--stats", arguments->stats, "read the data too: ranges, NaN, Inf, zeros, and how each candidate would fare");
  CLI::Option* candidates = add_candidates(command, arguments->candidates);
  candidates->needs(stats);
  command
      .add_option("--importance", arguments->importance,
                  "weigh squared errors of schemes, as `tcast convert` does; with --against try it on weights, too")
      ->option_text("FILE");
  command
      .add_option("--html", arguments->html,
                  "write a page that needs no network: tensors by candidates in colours, with histograms")
      ->option_text("FILE")
      ->needs(stats);
  CLI::Option* budget = add_bits(
      command, "--budget", arguments->budget,
      "choose a scheme for each matrix of a layer, so that these bits are their average, scales included, and the sum "
      "of squared errors is small; q, k and v, gate and up, and experts of a layer, get one scheme");
  budget->needs(stats);
  command.add_option("--plan", arguments->plan, "write the choice as rules, which can be edited, for convert --rules")
      ->option_text("FILE.yaml")
      ->needs(budget);
  command.add_flag("-f,--force", arguments->overwrite, "overwrite the files of --html and --plan");
  command
      .add_option("--against", arguments->against,
                  "the original of quantized weights: name the recipes that no byte excludes, for each of them")
      ->option_text("ORIGINAL");
  add_input_layout(command, arguments->layout);
  add_threads(command, arguments->execution.threads);
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, arguments->options);

  command.callback([arguments, candidates, sort, &work] {
    const bool one_only = !arguments->html.empty() || !arguments->plan.empty() || !arguments->against.empty();
    if (arguments->paths.size() > 1 && one_only) {
      throw CLI::ValidationError("FILE", "--html, --plan and --against are for one file");
    }
    arguments->has_candidates = candidates->count() != 0;
    const bool ranks = !arguments->html.empty() || arguments->budget != 0.0;
    if (ranks && !arguments->has_candidates) {
      arguments->candidates = {.schemes = tensorcast::default_scheme_candidates()};
      arguments->has_candidates = true;
    }
    if (!arguments->candidates.schemes.empty() && sort->count() == 0) arguments->order = Order::snr;
    arguments->raw = arguments->layout.raw_layout();
    std::erase(arguments->candidates.types, DType::string);  // has no losses to measure, but "all" includes it
    if (arguments->order == Order::snr && !arguments->stats) throw CLI::ValidationError("--sort", "snr needs --stats");
    const bool weighs = !arguments->importance.empty() && arguments->against.empty();
    if ((arguments->budget != 0.0 || weighs) && arguments->candidates.schemes.empty())
      throw CLI::ValidationError(weighs ? "--importance" : "--budget", "a scheme among the candidates is needed");
    if (arguments->candidates.types.empty() && arguments->candidates.schemes.empty())
      throw CLI::ValidationError("--candidates", "a numeric type is needed");
    work = [arguments] { return inspect(*arguments); };
  });
}

}  // namespace tcast
