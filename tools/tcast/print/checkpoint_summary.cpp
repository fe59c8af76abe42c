// SPDX-License-Identifier: Apache-2.0
#include "print/checkpoint_summary.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "print/conversion_summary.hpp"
#include "print/result_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/printable.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertOutcome;
using tensorcast::name;
using tensorcast::TensorOutcome;

// One row for each reason and pair of types, in order of first appearance.
struct Group {
  std::string reason;
  std::string from;
  tensorcast::DType to = tensorcast::DType::undefined;
  bool copied = false;
  std::uint64_t tensors = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

std::vector<Group> groups_of(const ConvertOutcome& outcome) {
  std::vector<Group> groups;
  for (const TensorOutcome& tensor : outcome.tensors) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& known) {
      return known.reason == with_options(tensor.reason) && known.from == from_text(tensor) && known.to == tensor.to;
    });
    if (group == groups.end()) {
      group = groups.insert(group,
                            Group{.reason = with_options(tensor.reason), .from = from_text(tensor), .to = tensor.to});
      group->copied = is_copied(tensor);
    }
    ++group->tensors;
    group->bytes_in += tensor.bytes_in;
    group->bytes_out += tensor.bytes_out;
  }
  return groups;
}

std::string groups_table(const ConvertOutcome& outcome) {
  Table table(
      {{"why"}, {"from"}, {"to"}, {"tensors", Align::right}, {"bytes in", Align::right}, {"bytes out", Align::right}});
  for (const Group& group : groups_of(outcome)) {
    table.add_row({printable(group.reason), group.from, group.copied ? "(copied)" : std::string(name(group.to)),
                   grouped(group.tensors), grouped(group.bytes_in), grouped(group.bytes_out)});
  }
  return table.to_string();
}

std::string files_text(const ConvertOutcome& outcome) {
  std::string text;
  if (!outcome.rewritten_files.empty()) {
    text += fmt::format(", {} rewritten", count_text(outcome.rewritten_files.size(), "JSON file"));
  }
  if (!outcome.copied_files.empty()) {
    text += fmt::format(", {} copied", count_text(outcome.copied_files.size(), "other file"));
  }
  return text;
}

// Names what is not copied, the largest first.
std::string left_out_text(const ConvertOutcome& outcome) {
  constexpr std::size_t most_named = 5;
  std::vector<tensorcast::LeftOut> left = outcome.left_out;
  std::ranges::stable_sort(left, std::ranges::greater(), &tensorcast::LeftOut::bytes);
  std::string text;
  for (std::size_t i = 0; i < std::min(left.size(), most_named); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "left out: " : ", ", printable(left[i].name), bytes_text(left[i].bytes));
  }
  if (left.size() > most_named) text += fmt::format(" and {} more", left.size() - most_named);
  return text.empty() ? text : text + "\n";
}

std::string needs_text(const tensorcast::Requirements& needs) {
  const bool fits = needs.disk_bytes <= needs.disk_free_bytes;
  return fmt::format("needs about {} if the output's disk is as fast as the input's, {} of memory, {} of disk: {}\n",
                     duration_text(needs.seconds), bytes_text(needs.memory_bytes), bytes_text(needs.disk_bytes),
                     fits ? fmt::format("{} are free", bytes_text(needs.disk_free_bytes))
                          : fmt::format("only {} are free", bytes_text(needs.disk_free_bytes)));
}

bool has_reports(const ConvertOutcome& outcome) {
  return std::any_of(outcome.tensors.begin(), outcome.tensors.end(),
                     [](const TensorOutcome& tensor) { return tensor.report.has_value(); });
}

}  // namespace

std::string resumed_text(const ConvertOutcome& outcome) {
  const auto before =
      std::count_if(outcome.shards.begin(), outcome.shards.end(), [](const auto& shard) { return shard.done_before; });
  if (before == 0 && !outcome.resumed) return {};
  return fmt::format("{} of {} had been converted by an earlier run", before,
                     count_text(outcome.shards.size(), "shard"));
}

std::string checkpoint_text(const tensorcast::ConvertRequest& request, const ConvertOutcome& outcome, double seconds,
                            bool plan_only) {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  for (const tensorcast::ShardOutcome& shard : outcome.shards) {
    bytes_in += shard.bytes_in;
    bytes_out += shard.bytes_out;
  }
  const std::string what =
      fmt::format("{}, {}", count_text(outcome.shards.size(), "shard"), tensor_counts(outcome)) + files_text(outcome);
  const std::string output = printable(request.output);
  std::string text;
  if (request.dry_run || plan_only) {
    text = groups_table(outcome) + fmt::format("\n{} -> {}: {}, {} -> {}\n", printable(request.input), output, what,
                                               bytes_text(bytes_in), bytes_text(bytes_out));
    text += left_out_text(outcome) + passes_text(outcome);
    if (outcome.requirements) text += needs_text(*outcome.requirements);
    if (request.dry_run) return text + "nothing was written\n";
    return text + fmt::format("wrote {}/.tcast/plan.json; `tcast run-shard {}` converts, `tcast finish {}` completes\n",
                              output, output, output);
  }
  if (has_reports(outcome)) text += loss_summary(outcome) + "\n";
  if (const std::string resumed = resumed_text(outcome); !resumed.empty()) text += resumed + "\n";
  std::uint64_t moved = 0;  // by this run
  for (const tensorcast::ShardOutcome& shard : outcome.shards) {
    if (!shard.done_before) moved += shard.bytes_in + shard.bytes_out;
  }
  const double rate = static_cast<double>(moved) / std::max(seconds, 1e-9);
  text += left_out_text(outcome);
  return text + fmt::format("{}: {}, {} -> {} in {}, {}{}\n", output, what, bytes_text(bytes_in), bytes_text(bytes_out),
                            duration_text(seconds), rate_text(rate), outcome.verified ? ", verified" : "");
}

void add_checkpoint_json(Json& json, const ConvertOutcome& outcome) {
  if (outcome.shards.empty()) return;
  json["shards"] = value_json(outcome.shards);
  json["resumed"] = outcome.resumed;
  json["rewritten_files"] = outcome.rewritten_files;
  json["copied_files"] = outcome.copied_files;
  json["left_out"] = value_json(outcome.left_out);
  Json plan = Json::array();
  for (const Group& group : groups_of(outcome)) {
    plan.push_back({{"why", group.reason},
                    {"from", group.from},
                    {"to", name(group.to)},
                    {"tensors", group.tensors},
                    {"bytes_in", group.bytes_in},
                    {"bytes_out", group.bytes_out}});
  }
  json["plan"] = std::move(plan);
  if (!outcome.requirements) return;
  const tensorcast::Requirements& needs = *outcome.requirements;
  json["requirements"] = result_json(needs);
  json["requirements"]["disk_suffices"] = needs.disk_bytes <= needs.disk_free_bytes;
}

}  // namespace tcast
