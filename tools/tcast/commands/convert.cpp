// SPDX-License-Identifier: Apache-2.0
// tcast convert: converts the tensors of a file to other types.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "commands/convert.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "flags/convert_rules.hpp"
#include "flags/options.hpp"
#include "print/checkpoint_summary.hpp"
#include "print/conversion_summary.hpp"
#include "print/report_file.hpp"
#include "process/error_json.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/progress_bar.hpp"
#include "process/standard_streams.hpp"
#include "process/terminal.hpp"
#include "tensorcast/attestation.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertOutcome;
using tensorcast::ConvertRequest;
using tensorcast::PathUse;
using tensorcast::Result;

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

// What became of the tensors, how many bytes, how fast.
std::string summary_line(const ConvertOutcome& outcome, double seconds) {
  const std::uint64_t bytes = outcome.bytes_read + outcome.bytes_written;
  return fmt::format("{}, {} -> {} in {}, {}{}\n", tensor_counts(outcome), bytes_text(outcome.bytes_read),
                     bytes_text(outcome.bytes_written), duration_text(seconds),
                     rate_text(static_cast<double>(bytes) / std::max(seconds, 1e-9)),
                     outcome.verified ? ", verified" : "");
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
  print(printable(request.output) + ": " + summary_line(outcome, seconds));
  print(bits_text(outcome));
  print_other_data(outcome);
}

// Replaces `-` by files.
Result<void> replace_standard_streams(ConvertRequest& request, StandardOutput& output) {
  if (request.output == standard_stream) {
    if (request.output_format.empty()) request.output_format = "npy";
    request.output = TRY(output.create());
  }
  if (request.input == standard_stream) request.input = TRY(standard_input_as_file());
  return {};
}

std::string shown_tensor(const tensorcast::TensorOutcome& tensor) {
  const std::string becomes = tensor.becomes.empty() ? std::string(tensorcast::name(tensor.to)) : tensor.becomes;
  const std::string types = fmt::format("{} to {}", from_text(tensor), becomes);
  return tensor.name.empty() ? types : fmt::format("tensor \"{}\" ({})", qualified_name(tensor), types);
}

// Lists on stderr the tensors that the conversion destroyed. `file`: the one of several that has them, or "".
void warn_of_damage(const ConvertOutcome& outcome, const std::string& file = {}) {
  constexpr std::size_t most_named = 5;
  std::vector<const tensorcast::TensorOutcome*> damaged;
  for (const tensorcast::TensorOutcome& tensor : outcome.tensors) {
    if (!tensor.damage.empty()) damaged.push_back(&tensor);
  }
  if (damaged.empty()) return;
  const std::string hint = damaged.front()->remedy + "; --strict-loss makes it an error, --report shows all";
  const std::string where = file.empty() ? "" : file + ": ";
  const std::size_t named = std::min(damaged.size(), most_named);
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == damaged.size();
    warn_of_loss(fmt::format("{}{}: {}", where, shown_tensor(*damaged[i]), damaged[i]->damage), last ? hint : "");
  }
  if (named < damaged.size()) warn_of_loss(where + count_text(damaged.size() - named, "more tensor"), hint);
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

// A line of Python that converts between URLs, which the package reads and writes by fsspec.
std::string line_for_url(const ConvertRequest& request) {
  const std::string target = !request.scheme.empty()                      ? request.scheme
                             : request.to == tensorcast::DType::undefined ? ""
                                                                          : std::string(tensorcast::name(request.to));
  return fmt::format("python3 -c 'import tensorcast; tensorcast.convert(\"{}\", \"{}\"{})'", request.input,
                     request.output, target.empty() ? "" : fmt::format(", to=\"{}\"", target));
}

// Checks what the command line names before anything is read or written.
Result<void> check_before(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  if (is_url(request.input) || is_url(request.output)) {
    return tensorcast::in_file(is_url(request.input) ? request.input : request.output,
                               tensorcast::unsupported("URLs are not read here", line_for_url(request)));
  }
  TRY(check_paths(arguments));
  std::error_code ignored;  // the later check reports it
  if (!request.overwrite && std::filesystem::exists(arguments.attestation, ignored)) {
    return tensorcast::in_file(arguments.attestation,
                               tensorcast::invalid("the statement exists already", "--force replaces it"));
  }
  if (arguments.report_path.empty()) return {};
  if (request.parents) {
    std::filesystem::create_directories(std::filesystem::path(arguments.report_path).parent_path(), ignored);
  }
  return check_report_path(arguments.report_path, paths_of(arguments), request.overwrite);
}

// `cancellable` is set by the first progress report, which precedes the output. Before, a signal ends the program at
// once: reading the list of tensors may take long.
Result<ConvertOutcome> run_conversion(ConvertArguments& arguments, std::optional<CancellableWork>& cancellable) {
  ProgressBar bar(!arguments.quiet);
  arguments.request.on_progress = [&](const tensorcast::Progress& progress) {
    if (!cancellable) cancellable.emplace();
    bar.show(progress);
    return !interrupted();
  };
  if (arguments.plan_only) return tensorcast::plan_checkpoint(arguments.request);
  return arguments.attestation.empty() ? tensorcast::convert(arguments.request)
                                       : tensorcast::convert_attested(arguments.request, arguments.attestation);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int convert(ConvertArguments& arguments) {
  ConvertRequest& request = arguments.request;
  if (const Result<void> checked = check_before(arguments); !checked) return fail(checked.error());

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
  Result<ConvertOutcome> outcome = run_conversion(arguments, cancellable);
  const double seconds = seconds_since(start);
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

// Several files into a folder. A file that fails leaves nothing behind, and the others are converted.
class FolderConversion {
 public:
  explicit FolderConversion(ConvertArguments& arguments)
      : arguments_(arguments), request_(arguments.request), folder_(request_.output) {}

  int run() {
    for (std::size_t i = 0; i < arguments_.inputs.size(); ++i) {
      choose(i);
      if (const Result<void> checked = check_before(arguments_); !checked) return fail(checked.error());
    }
    if (const Result<void> ready = make_folder(); !ready) return fail(ready.error());
    for (std::size_t i = 0; i < arguments_.inputs.size(); ++i) {
      if (!convert_one(i)) {
        return report_interruption(
            fmt::format("{} of {} are written", done_, count_text(arguments_.inputs.size(), "file")));
      }
    }
    return finish();
  }

 private:
  void choose(std::size_t i) {
    request_.input = arguments_.inputs[i];
    request_.output = arguments_.outputs[i];
  }

  Result<void> make_folder() const {
    std::error_code error;
    if (request_.dry_run || std::filesystem::is_directory(folder_, error)) return {};
    request_.parents ? std::filesystem::create_directories(folder_, error)
                     : std::filesystem::create_directory(folder_, error);
    if (!error) return {};
    const bool is_file = error == std::errc::file_exists;
    return tensorcast::in_file(
        folder_, tensorcast::Error{.code = tensorcast::ErrorCode::io,
                                   .message = is_file ? "several files are converted into a folder, and this is a file"
                                                      : "the folder cannot be created: " + error.message(),
                                   .hint = error == std::errc::no_such_file_or_directory
                                               ? "--parents creates the folders above it, too"
                                               : ""});
  }

  // Returns false after an interruption.
  bool convert_one(std::size_t i) {
    choose(i);
    const auto start = std::chrono::steady_clock::now();
    std::optional<CancellableWork> cancellable;
    const bool parents = std::exchange(request_.parents, request_.parents || request_.dry_run);
    Result<ConvertOutcome> outcome = run_conversion(arguments_, cancellable);
    request_.parents = parents;
    if (!outcome) {
      if (outcome.error().code == tensorcast::ErrorCode::cancelled) return false;
      tensorcast::Error error = tensorcast::in_file(request_.input, std::move(outcome).error());
      report_error(error);
      files_.push_back({{"input", request_.input}, {"output", request_.output}, {"error", error_json(error)}});
      failed_.push_back(request_.input);
      return true;
    }
    ++done_;
    if (request_.report) files_.push_back(outcome_json(request_, *outcome, seconds_since(start)));
    if (request_.dry_run && !arguments_.json) print_outcome(arguments_, *outcome, seconds_since(start));
    if (!request_.dry_run) warn_of_omissions(*outcome);
    warn_of_damage(*outcome, request_.input);
    if (!arguments_.quiet) warn_of_float6(*outcome);
    add(std::move(*outcome));
    return true;
  }

  void add(ConvertOutcome outcome) {
    all_.verified = outcome.verified;
    all_.bytes_read += outcome.bytes_read;
    all_.bytes_written += outcome.bytes_written;
    for (tensorcast::TensorOutcome& tensor : outcome.tensors) {
      tensor.file = request_.input + "/";  // as qualified_name() shows it
      all_.tensors.push_back(std::move(tensor));
    }
    if (!outcome.other_data.empty()) other_data_.push_back(std::move(outcome.other_data));
  }

  int finish() {
    const double seconds = seconds_since(start_);
    const Json json = {{"files", std::move(files_)}, {"failed", failed_.size()}, {"seconds", seconds}};
    if (!arguments_.report_path.empty()) {
      const Result<void> written =
          write_report(arguments_.report_path, paths_of(arguments_), json_text(json), request_.overwrite);
      if (!written) return fail(written.error());
    }
    if (arguments_.json) {
      print(json_text(json));
    } else if (!arguments_.quiet && !request_.dry_run) {
      if (request_.report && done_ != 0) print(loss_summary(all_) + "\n");
      const std::string count = failed_.empty()
                                    ? count_text(done_, "file")
                                    : fmt::format("{} of {}", done_, count_text(arguments_.inputs.size(), "file"));
      print(fmt::format("{}: {}, {}", printable(folder_), count, summary_line(all_, seconds)));
      for (const std::string& path : other_data_)
        print(fmt::format("{}: the checkpoint's other data\n", printable(path)));
    }
    std::error_code ignored;
    if (done_ == 0 && !request_.dry_run) std::filesystem::remove(folder_, ignored);  // unless something is in it
    return failed_.empty() ? exit_done : exit_failed;
  }

  ConvertArguments& arguments_;
  ConvertRequest& request_;
  const std::string folder_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t done_ = 0;
  std::vector<std::string> failed_ = {}, other_data_ = {};
  ConvertOutcome all_ = {};  // of the files that were converted
  Json files_ = Json::array();
};

}  // namespace

int convert_all(ConvertArguments& arguments) {
  for (const std::string& path : arguments.rule_files) {
    if (const Result<void> added = add_rules(path, arguments.request); !added) return fail(added.error());
  }
  if (const Result<void> right = tensorcast::check_request(arguments.request); !right) return misuse(right.error());
  if (!arguments.quiet) warn_of_namesake(targets_of(arguments.request));
  return arguments.outputs.empty() ? convert(arguments) : FolderConversion(arguments).run();
}

}  // namespace tcast
