// SPDX-License-Identifier: Apache-2.0
#include "print/conversion_summary.hpp"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/cast_options.hpp"
#include "print/result_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"

namespace tcast {
namespace {

using tensorcast::CastReport;
using tensorcast::ConvertOutcome;
using tensorcast::ConvertRequest;
using tensorcast::DType;
using tensorcast::name;
using tensorcast::TensorOutcome;
using tensorcast::TypeReason;

constexpr std::size_t longest_name = 60;

struct Total {
  DType from = DType::undefined;
  std::string scheme;   // of layers that were decoded
  std::string becomes;  // of weights that were quantized
  DType to = DType::undefined;
  std::uint64_t tensors = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  CastReport report;
  std::uint64_t elements = 0;  // of weights that were quantized
  double bits = 0.0;           // of these together
};

// What was decoded; "" also of a weight that is quantized.
std::string decoded_scheme(const TensorOutcome& tensor) { return tensor.becomes.empty() ? tensor.scheme : ""; }

// "4.5 bits".
std::string average_text(double bits, std::uint64_t elements) {
  return fmt::format("{:.4g} bits", bits / static_cast<double>(std::max<std::uint64_t>(elements, 1)));
}

// In order of first appearance.
std::vector<Total> totals_of(const ConvertOutcome& outcome) {
  std::vector<Total> totals;
  for (const TensorOutcome& tensor : outcome.tensors) {
    auto total = std::find_if(totals.begin(), totals.end(), [&](const Total& known) {
      return known.from == tensor.from && known.scheme == decoded_scheme(tensor) && known.becomes == tensor.becomes &&
             (known.to == tensor.to || !tensor.becomes.empty());
    });
    if (total == totals.end()) {
      totals.push_back({.from = tensor.from,
                        .scheme = decoded_scheme(tensor),
                        .becomes = tensor.becomes,
                        .to = tensor.to,
                        .tensors = 0,
                        .bytes_in = 0,
                        .bytes_out = 0,
                        .report = {},
                        .elements = 0,
                        .bits = 0.0});
      total = totals.end() - 1;
    }
    ++total->tensors;
    total->bytes_in += tensor.bytes_in;
    total->bytes_out += tensor.bytes_out;
    total->elements += tensor.elements;
    total->bits += tensor.bits * static_cast<double>(tensor.elements);
    if (tensor.report) total->report.merge(*tensor.report);
  }
  return totals;
}

std::string shown_name(const std::string& tensor) {
  return tensor.empty() ? "-" : abbreviated(printable(tensor), longest_name);
}

// Counts the elements whose result is not just the nearest value.
std::uint64_t lossy_elements(const CastReport& report) {
  return report.overflowed + report.saturated + report.underflowed_to_zero + report.nan_made + report.nan_lost +
         report.wrapped + report.sign_lost;
}

// "12 overflowed, 3 became zero", or "".
std::string losses_text(const CastReport& report) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count != 0) parts.push_back(fmt::format("{} {}", grouped(count), what));
  };
  add(report.overflowed, "overflowed");
  add(report.saturated, "saturated");
  add(report.wrapped, "wrapped");
  add(report.underflowed_to_zero, "became zero");
  add(report.nan_made > report.overflowed ? report.nan_made - report.overflowed : 0, "became NaN");
  add(report.nan_lost, "lost NaN");
  add(report.sign_lost, "lost their sign");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  if (part == 0) return "0 %";
  return fmt::format("{:.1f} %",
                     100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1)));
}

std::string totals_table(const ConvertOutcome& outcome) {
  Table table({{"from"},
               {"to"},
               {"tensors", Align::right},
               {"bytes in", Align::right},
               {"bytes out", Align::right},
               {"inexact", Align::right},
               {"SNR", Align::right},
               {"max rel error", Align::right},
               {"lost"}});
  for (const Total& total : totals_of(outcome)) {
    const bool copied = total.from == total.to && total.scheme.empty() && total.report.count == 0;
    const std::string to = !total.becomes.empty()
                               ? fmt::format("{}, {}", total.becomes, average_text(total.bits, total.elements))
                           : copied ? "(copied)"
                                    : std::string(name(total.to));
    std::vector<std::string> cells = {total.scheme.empty() ? std::string(name(total.from)) : printable(total.scheme),
                                      to, grouped(total.tensors), grouped(total.bytes_in), grouped(total.bytes_out)};
    const bool measured = total.becomes.empty() || total.report.count != 0;
    if (!copied && measured) {
      cells.insert(cells.end(), {share_text(total.report.inexact, total.report.count),
                                 decibel_text(total.report.snr_db()), short_number(total.report.max_rel_error),
                                 lossy_elements(total.report) == 0 ? "nothing" : in_red(losses_text(total.report))});
    }
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

std::string worst_tensors_table(const ConvertOutcome& outcome) {
  constexpr std::size_t shown = 5;
  std::vector<const TensorOutcome*> worst;
  for (const TensorOutcome& tensor : outcome.tensors) {
    if (tensor.report && (tensor.report->inexact != 0 || lossy_elements(*tensor.report) != 0)) worst.push_back(&tensor);
  }
  if (worst.empty()) return "";
  // Destroyed elements do not count as noise, so tensors that have some come first.
  const auto loss = [](const TensorOutcome* tensor) {
    return std::pair(tensor->report->overflowed == 0 && tensor->report->nan_made == 0, tensor->report->snr_db());
  };
  std::stable_sort(worst.begin(), worst.end(),
                   [&](const TensorOutcome* a, const TensorOutcome* b) { return loss(a) < loss(b); });
  Table table({{"worst tensors"},
               {"to"},
               {"elements", Align::right},
               {"SNR", Align::right},
               {"max abs error", Align::right},
               {"max rel error", Align::right},
               {"lost"}});
  for (std::size_t i = 0; i < std::min(shown, worst.size()); ++i) {
    const TensorOutcome& tensor = *worst[i];
    table.add_row({shown_name(qualified_name(tensor)),
                   tensor.becomes.empty() ? std::string(name(tensor.to)) : tensor.becomes,
                   grouped(tensor.report->count), decibel_text(tensor.report->snr_db()),
                   short_number(tensor.report->max_abs_error), short_number(tensor.report->max_rel_error),
                   losses_text(*tensor.report)});
  }
  return "\n" + table.to_string();
}

// Weights that become one scheme.
struct QuantizedWeights {
  std::uint64_t count = 0, elements = 0;
  double bits = 0.0;  // of all elements
  CastReport report;

  void add(const TensorOutcome& tensor) {
    count += tensor.bytes_in != 0 ? 1 : 0;
    elements += tensor.elements;
    bits += tensor.bits * static_cast<double>(tensor.elements);
    if (tensor.report) report.merge(*tensor.report);
  }
  [[nodiscard]] std::string text(const std::string& becomes) const {
    const std::string loss = report.count == 0 ? "" : fmt::format(", {}", decibel_text(report.snr_db()));
    return fmt::format("{} quantized to {}: {}{}", count_text(count, "weight"), becomes, average_text(bits, elements),
                       loss);
  }
};

}  // namespace

std::string from_text(const TensorOutcome& tensor) {
  const std::string scheme = decoded_scheme(tensor);
  if (scheme.empty() && tensor.from == DType::undefined) return "its own type";  // blocks that are copied
  return scheme.empty() ? std::string(name(tensor.from)) : printable(scheme);
}

bool is_copied(const TensorOutcome& tensor) {
  return tensor.from == tensor.to && tensor.scheme.empty() && tensor.becomes.empty();
}

std::string qualified_name(const TensorOutcome& tensor) {
  return tensor.file.substr(0, tensor.file.rfind('/') + 1) + tensor.name;
}

std::string plan_table(const ConvertOutcome& outcome) {
  Table table(
      {{"tensor"}, {"shape"}, {"from"}, {"to"}, {"bytes in", Align::right}, {"bytes out", Align::right}, {"why"}});
  for (const TensorOutcome& tensor : outcome.tensors) {
    std::string shown = shown_name(tensor.name);
    if (!tensor.output_name.empty()) shown += " -> " + shown_name(tensor.output_name);
    table.add_row({std::move(shown), shape_text(tensor.shape), from_text(tensor),
                   is_copied(tensor) ? "(copied)" : std::string(name(tensor.to)), grouped(tensor.bytes_in),
                   grouped(tensor.bytes_out),
                   with_options(tensor.reason) + (tensor.choice.empty() ? "" : ": " + tensor.choice)});
  }
  return table.to_string();
}

std::string passes_text(const ConvertOutcome& outcome) {
  const auto count = std::ranges::count_if(outcome.tensors, [](const auto& tensor) { return tensor.passes > 1; });
  if (count == 0) return {};
  return fmt::format("{} {} read twice, as one scale is for a whole tensor\n",
                     count_text(static_cast<std::uint64_t>(count), "weight"), count == 1 ? "is" : "are");
}

std::string tensor_counts(const ConvertOutcome& outcome) {
  std::vector<std::pair<DType, std::uint64_t>> converted;
  std::vector<std::pair<const TensorOutcome*, std::uint64_t>> left;  // the first for a reason, count
  std::map<std::string, QuantizedWeights> quantized;                 // by what they become
  std::uint64_t copied = 0;
  for (const TensorOutcome& tensor : outcome.tensors) {
    if (!tensor.becomes.empty()) {
      quantized[with_options(tensor.reason)].add(tensor);
      continue;
    }
    if (tensor.left) {
      auto known = std::find_if(left.begin(), left.end(),
                                [&](const auto& entry) { return entry.first->reason == tensor.reason; });
      if (known == left.end()) known = left.insert(left.end(), {&tensor, 0});
      ++known->second;
      continue;
    }
    if (is_copied(tensor)) {
      ++copied;
      continue;
    }
    auto known =
        std::find_if(converted.begin(), converted.end(), [&](const auto& entry) { return entry.first == tensor.to; });
    if (known == converted.end()) known = converted.insert(converted.end(), {tensor.to, 0});
    ++known->second;
  }
  std::vector<std::string> parts;
  for (const auto& [becomes, weights] : quantized) parts.push_back(weights.text(becomes));
  for (const auto& [dtype, count] : converted) parts.push_back(fmt::format("{} to {}", grouped(count), name(dtype)));
  if (copied != 0) parts.push_back(fmt::format("{} copied", grouped(copied)));
  for (const auto& [first, count] : left) {
    const char* option = first->why == TypeReason::optimizer_state ? "--rule"
                         : first->why == TypeReason::unfit         ? "--strict-schemes"
                         : first->why == TypeReason::not_loaded    ? "--force-layout"
                                                                   : "--allow-odd";
    parts.push_back(fmt::format("{} left: {}, see {}", grouped(count), first->reason, option));
  }
  const std::string all = count_text(outcome.tensors.size(), "tensor");
  return parts.empty() ? all : fmt::format("{} ({})", all, fmt::join(parts, ", "));
}

std::string bits_text(const ConvertOutcome& outcome) {
  double weight_bits = 0.0, weight_elements = 0.0, bits = 0.0, elements = 0.0;
  bool has_choice = false;
  for (const TensorOutcome& tensor : outcome.tensors) {
    const double tensor_bits = 8.0 * static_cast<double>(tensor.bytes_out);
    bits += tensor_bits;
    has_choice = has_choice || !tensor.choice.empty();
    if (tensor.becomes.empty()) {
      elements += static_cast<double>(tensorcast::element_count(tensor.shape).value_or(0));
    } else {
      weight_bits += tensor_bits;
      weight_elements += static_cast<double>(tensor.elements);
    }
  }
  if (!has_choice || weight_elements == 0.0) return "";
  return fmt::format("quantized weights have {:.4f} bits on average, scales included; all tensors {:.4f}\n",
                     weight_bits / weight_elements, bits / (weight_elements + elements));
}

std::string loss_summary(const ConvertOutcome& outcome) { return totals_table(outcome) + worst_tensors_table(outcome); }

Json outcome_json(const ConvertRequest& request, const ConvertOutcome& outcome, double seconds) {
  Json tensors = Json::array();
  for (const TensorOutcome& tensor : outcome.tensors) {
    Json entry = result_json(tensor);
    entry["reason"] = with_options(tensor.reason);
    tensors.push_back(std::move(entry));
  }
  Json totals = Json::array();
  for (const Total& total : totals_of(outcome)) {
    Json entry = {{"from", name(total.from)},
                  {"to", name(total.to)},
                  {"tensors", total.tensors},
                  {"bytes_in", total.bytes_in},
                  {"bytes_out", total.bytes_out}};
    if (!total.scheme.empty()) entry["scheme"] = total.scheme;
    if (!total.becomes.empty()) entry["becomes"] = total.becomes;
    if (total.elements != 0) entry["bits"] = total.bits / static_cast<double>(total.elements);
    if (total.report.count != 0) entry["report"] = to_json(total.report);
    totals.push_back(std::move(entry));
  }
  Json json = {{"input", request.input},
               {"input_format", outcome.input_format},
               {"output", request.output},
               {"output_format", outcome.output_format},
               {"dry_run", request.dry_run},
               {"verified", outcome.verified},
               {"bytes_read", outcome.bytes_read},
               {"bytes_written", outcome.bytes_written},
               {"seconds", seconds},
               {"options", options_json(request.options)},
               {"totals", std::move(totals)},
               {"tensors", std::move(tensors)}};
  if (!outcome.other_data.empty()) json["other_data"] = outcome.other_data;
  if (!outcome.warnings.empty()) json["warnings"] = outcome.warnings;
  return json;
}

}  // namespace tcast
