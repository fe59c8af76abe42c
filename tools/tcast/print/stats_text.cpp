// SPDX-License-Identifier: Apache-2.0
#include "print/stats_text.hpp"

#include <algorithm>

#include "print/text_table.hpp"
#include "print/value_text.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"

namespace tcast {
namespace {

using tensorcast::name;

bool has_any(const Specials& specials) { return !specials_text(specials).empty(); }

// A count of elements that a type would destroy.
std::string destroyed(std::uint64_t count) { return count == 0 ? grouped(count) : in_red(grouped(count)); }

}  // namespace

std::string shown_name(const tensorcast::TensorSummary& tensor) {
  return tensor.name.empty() ? "-" : printable(tensor.name);
}

std::string stats_table(std::span<const Inspected> tensors) {
  Table table({{"tensor"},
               {"elements", Align::right},
               {"min", Align::right},
               {"max", Align::right},
               {"smallest", Align::right},
               {"zeros", Align::right},
               {"NaN", Align::right},
               {"Inf", Align::right}});
  for (const auto& [summary, stats, specials, file_path] : tensors) {
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

// The column of infinities and NaN is there if some tensor makes or loses one.
std::string candidates_table(std::span<const Inspected> tensors) {
  const bool any = std::ranges::any_of(
      tensors, [](const Inspected& tensor) { return std::ranges::any_of(tensor.specials, has_any); });
  std::vector<Column> columns = {{"tensor"},
                                 {"as"},
                                 {"overflow", Align::right},
                                 {"underflow", Align::right},
                                 {"inexact", Align::right},
                                 {"max rel error", Align::right},
                                 {"SNR", Align::right}};
  if (any) columns.push_back({"Inf and NaN"});
  Table table(std::move(columns));
  for (const Inspected& tensor : tensors) {
    if (!tensor.stats) continue;
    std::string shown = shown_name(tensor.summary);
    for (std::size_t i = 0; i < tensor.stats->candidates.size(); ++i) {
      const auto& [candidate, report] = tensor.stats->candidates[i];
      // Without noise among the finite numbers, "exact" would hide the others.
      const bool exact_but = has_any(tensor.specials[i]) && report.noise_power == 0.0;
      table.add_row({std::move(shown), std::string(name(candidate)),
                     destroyed(report.overflowed + report.saturated + report.wrapped),
                     destroyed(report.underflowed_to_zero), grouped(report.inexact), short_number(report.max_rel_error),
                     exact_but ? "-" : decibel_text(report.snr_db()), specials_text(tensor.specials[i])});
      shown.clear();  // the name is printed once, above its candidates
    }
  }
  return table.empty() ? "" : "\n" + table.to_string();
}

}  // namespace tcast
