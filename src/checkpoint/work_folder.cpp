#include "checkpoint/work_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "checkpoint/file_name.hpp"
#include "checkpoint/remote_folder.hpp"

namespace tensorcast::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t max_plan_bytes = std::uint64_t{2} << 30;
constexpr std::uint64_t max_done_bytes = std::uint64_t{1} << 30;

// JSON has no infinity.
Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number_of(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

Json report_json(const CastReport& report) {
  return Json::array({report.count, report.overflowed, report.saturated, report.underflowed_to_zero, report.inexact,
                      report.nan_made, report.nan_lost, report.wrapped, number_json(report.max_abs_error),
                      number_json(report.max_rel_error), number_json(report.signal_power),
                      number_json(report.noise_power)});
}

CastReport report_of(const Json& json) {
  CastReport report;
  std::size_t at = 0;
  for (std::uint64_t* count : {&report.count, &report.overflowed, &report.saturated, &report.underflowed_to_zero,
                               &report.inexact, &report.nan_made, &report.nan_lost, &report.wrapped}) {
    *count = json.at(at++).get<std::uint64_t>();
  }
  for (double* value : {&report.max_abs_error, &report.max_rel_error, &report.signal_power, &report.noise_power}) {
    *value = number_of(json.at(at++));
  }
  return report;
}

std::string done_text(const std::string& name, const DoneShard& done) {
  Json tensors = Json::array();
  for (const TensorOutcome& tensor : done.tensors) {
    Json entry = Json::object();
    entry["name"] = tensor.name;
    if (!tensor.damage.empty()) entry["damage"] = tensor.damage;
    if (!tensor.remedy.empty()) entry["remedy"] = tensor.remedy;
    if (tensor.report) entry["report"] = report_json(*tensor.report);
    tensors.push_back(std::move(entry));
  }
  const Json document = {{"file", name},
                         {"bytes", done.bytes},
                         {"sha256", done.sha256},
                         {"fingerprint", done.fingerprint},
                         {"tensors", std::move(tensors)}};
  return document.dump(1) + "\n";
}

// Throws Json::exception.
DoneShard done_of(const std::string& text) {
  const Json document = Json::parse(text);
  DoneShard done{.sha256 = document.at("sha256").get<std::string>(),
                 .bytes = document.at("bytes").get<std::uint64_t>(),
                 .fingerprint = document.at("fingerprint").get<std::string>(),
                 .tensors = {}};
  for (const Json& entry : document.at("tensors")) {
    TensorOutcome& tensor = done.tensors.emplace_back();
    tensor.name = entry.at("name").get<std::string>();
    tensor.damage = entry.value("damage", "");
    tensor.remedy = entry.value("remedy", "");
    if (entry.contains("report")) tensor.report = report_of(entry.at("report"));
  }
  return done;
}

bool is_sha256(const std::string& text) {
  constexpr std::size_t digits = 64;
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

WorkFolder::WorkFolder(const std::string& output) : output_(output) {
  if (last_component(output) == "plan.json" && is_file(output)) {
    const std::string folder = folder_of(output);
    output_ = folder.empty() ? "." : folder;
  }
  while (output_.size() > 1 && output_.ends_with('/')) output_.pop_back();
  if (output_.ends_with("/.tcast")) output_.resize(output_.size() - std::string_view("/.tcast").size());
}

Result<std::optional<std::string>> WorkFolder::plan_text() const {
  const bool moving = is_file(moving_path());  // then a file of the checkpoint may have the plan's place
  for (const std::string& path : {plan_path(), moved_plan_path()}) {
    if (!is_file(path) || (moving && path == plan_path())) continue;
    Result<std::string> text = read_file_text(path, max_plan_bytes);
    if (!text) return std::move(text).error();
    // A checkpoint may have a file of this name of its own.
    if (path == plan_path() && !is_folder(hidden())) return std::optional<std::string>();
    return std::optional(std::move(text).value());
  }
  return std::optional<std::string>();
}

Result<CheckpointPlan> WorkFolder::load_plan() const {
  Result<std::optional<std::string>> text = plan_text();
  if (!text) return std::move(text).error();
  if (!text->has_value()) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = is_file(place("SHA256SUMS")) ? "the folder has no plan: the conversion is complete"
                                                         : "the folder has no plan of a conversion",
                 .hint = "`tcast plan` makes one",
                 .file = output_};
  }
  return parse_plan(**text, plan_path());
}

Result<void> WorkFolder::begin(const CheckpointPlan& plan) const {
  for (const std::string& folder : plan.folders()) {
    for (const std::string& path : {staged(folder), hidden() + "/done/" + folder}) {
      if (Result<void> created = create_folders(path); !created) return created;
    }
  }
  // Objects have no empty folders.
  if (is_remote(output_)) {
    if (Result<void> begun = write_file_text(hidden() + "/begun", "\n"); !begun) return begun;
  }
  if (Result<void> clean = remove_strangers(plan); !clean) return clean;
  return write_file_text(plan_path(), checkpoint::plan_text(plan));
}

Result<void> WorkFolder::remove_strangers(const CheckpointPlan& plan) const {
  std::set<std::string> known;
  for (const PlannedShard& shard : plan.shards) {
    known.insert(staged(shard.name));
    known.insert(done_path(shard.name));
  }
  if (is_remote(output_)) return remove_remote_strangers(known);
  std::error_code status;
  std::vector<fs::path> strangers;
  for (const auto& entry : fs::recursive_directory_iterator(hidden(), status)) {
    // A file of another writer is locked, and hidden.
    const bool writing = entry.path().filename().string().find(".tcast-") != std::string::npos;
    if (entry.is_regular_file(status) && !writing && !known.contains(entry.path().string())) {
      strangers.push_back(entry.path());
    }
  }
  for (const fs::path& path : strangers) fs::remove(path, status);
  return {};
}

Result<void> WorkFolder::remove_remote_strangers(const std::set<std::string>& known) const {
  const Result<std::vector<RemoteFile>> files = list_remote(hidden());
  if (!files) return files.error();
  for (const RemoteFile& file : *files) {
    if (known.contains(file.url) || file.url == hidden() + "/begun") continue;
    if (Result<void> removed = remove_tree(file.url); !removed) return removed;
  }
  return {};
}

Result<void> WorkFolder::finish_hidden() const {
  if (is_remote(output_)) return remove_tree(hidden());
  if (Result<void> removed = remove_finished(); !removed) return removed;
  if (Result<void> moved = rename_file(hidden(), finished()); !moved) return moved;
  return remove_finished();
}

Result<void> WorkFolder::remove_finished() const { return remove_tree(finished()); }

bool WorkFolder::is_empty() const {
  if (is_remote(output_)) {
    const Result<std::vector<RemoteFile>> files = list_remote(output_);
    if (!files) return false;
    return std::ranges::all_of(*files, [&](const RemoteFile& file) { return file.url.starts_with(hidden() + "/"); });
  }
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(output_, status)) {
    const std::string name = entry.path().filename().string();
    if (name != ".tcast" && name.find(".tcast-") == std::string::npos) return false;
  }
  return true;
}

std::optional<DoneShard> WorkFolder::done(const PlannedShard& shard) const {
  if (!is_file(done_path(shard.name))) return std::nullopt;
  const Result<std::string> text = read_file_text(done_path(shard.name), max_done_bytes);
  if (!text) return std::nullopt;
  try {
    DoneShard done = done_of(*text);
    const bool fits = done.fingerprint == shard.fingerprint && is_sha256(done.sha256) && done.bytes == shard.bytes &&
                      done.tensors.size() == shard.tensors.size();
    if (!fits) return std::nullopt;
    // While files get their places, a shard is in one of two.
    const bool moved = is_file(moving_path()) && file_bytes(place(shard.name)) == shard.bytes;
    if (file_bytes(staged(shard.name)) != shard.bytes && !moved) return std::nullopt;
    return done;
  } catch (const Json::exception&) {
    return std::nullopt;  // it is converted again
  }
}

Result<void> WorkFolder::set_done(const PlannedShard& shard, const DoneShard& done) const {
  return write_file_text(done_path(shard.name), done_text(shard.name, done));
}

}  // namespace tensorcast::checkpoint
