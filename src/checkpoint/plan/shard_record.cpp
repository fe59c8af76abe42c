// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/shard_record.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "io/written_files.hpp"
#include "options/cast_report.hpp"

namespace tensorcast::checkpoint {
namespace {

using Json = nlohmann::json;

Json report_json(const CastReport& report) {
  Json json = Json::array();
  options::for_each(options::cast_report, [&](const auto& number) {
    const auto value = report.*number.member;
    // JSON has no infinity.
    json.push_back(std::isfinite(static_cast<double>(value)) ? Json(value) : Json(nullptr));
  });
  return json;
}

CastReport report_of(const Json& json) {
  CastReport report;
  std::size_t at = 0;
  options::for_each(options::cast_report, [&](const auto& number) {
    auto& value = report.*number.member;
    using Value = std::decay_t<decltype(value)>;
    const Json& given = json.at(at++);
    constexpr bool may_be_infinite = std::is_floating_point_v<Value>;
    value = may_be_infinite && given.is_null() ? std::numeric_limits<Value>::infinity() : given.get<Value>();
  });
  return report;
}

// Throws Json::exception.
DoneShard done_of(const std::string& text) {
  const Json document = Json::parse(text);
  DoneShard done{.sha256 = document.at("sha256").get<std::string>(),
                 .bytes = document.at("bytes").get<std::uint64_t>(),
                 .fingerprint = document.at("fingerprint").get<std::string>(),
                 .tensors = document.at("tensors").get<std::size_t>(),
                 .notes = {}};
  for (const Json& entry : document.at("notes")) {
    file_conversion::TensorNote& note = done.notes[entry.at("tensor").get<std::size_t>()];
    note.damage = entry.value("damage", "");
    note.remedy = entry.value("remedy", "");
    if (entry.contains("report")) note.report = report_of(entry.at("report"));
  }
  return done;
}

}  // namespace

std::string shard_record_text(const std::string& name, const DoneShard& done) {
  Json notes = Json::array();
  for (const auto& [tensor, note] : done.notes) {
    Json entry = {{"tensor", tensor}};
    if (!note.damage.empty()) entry["damage"] = note.damage;
    if (!note.remedy.empty()) entry["remedy"] = note.remedy;
    if (note.report) entry["report"] = report_json(*note.report);
    notes.push_back(std::move(entry));
  }
  const Json document = {{"file", name},
                         {"bytes", done.bytes},
                         {"sha256", done.sha256},
                         {"fingerprint", done.fingerprint},
                         {"tensors", done.tensors},
                         {"notes", std::move(notes)}};
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
