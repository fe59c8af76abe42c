#include "checkpoint/shard_record.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/written_files.hpp"

namespace tensorcast::checkpoint {
namespace {

using Json = nlohmann::json;

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

}  // namespace

std::string shard_record_text(const std::string& name, const DoneShard& done) {
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

std::optional<DoneShard> parse_shard_record(const std::string& text) {
  try {
    DoneShard done = done_of(text);
    return io::is_sha256(done.sha256) ? std::optional(std::move(done)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tensorcast::checkpoint
