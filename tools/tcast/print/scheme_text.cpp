// SPDX-License-Identifier: Apache-2.0
#include "print/scheme_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "print/candidates_page.hpp"
#include "print/text_table.hpp"
#include "print/value_text.hpp"
#include "process/printable.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::SchemeCandidate;
using tensorcast::SchemeFit;
using tensorcast::TensorStats;

// Returns a complaint about one candidate, or adds it.
std::string read_candidate(const std::string& text, Candidates& read) {
  auto& [types, schemes] = read;
  if (text == "all") {
    const auto all = tensorcast::all_dtypes();
    types.insert(types.end(), all.begin(), all.end());
    return {};
  }
  if (text == "schemes") {
    const auto all = tensorcast::default_scheme_candidates();
    schemes.insert(schemes.end(), all.begin(), all.end());
    return {};
  }
  const auto scheme = tensorcast::parse_scheme_candidate(text);
  if (scheme) {
    schemes.push_back(*scheme);
    return {};
  }
  const bool names_recipe = text.find(':') != std::string::npos;
  const auto dtype = tensorcast::parse_dtype(text);
  if (dtype && !names_recipe) {
    types.push_back(*dtype);
    return {};
  }
  return names_recipe ? complaint_of(scheme) : complaint_of(dtype);
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  if (part == 0) return "0";
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string name_of(const SchemeFit& fit) { return fit.recipe.empty() ? fit.scheme : fit.scheme + ":" + fit.recipe; }

Json fit_json(const SchemeFit& fit, std::uint64_t count) {
  Json entry = {{"scheme", fit.scheme}, {"recipe", fit.recipe}};
  if (!fit.problem.empty()) {
    entry["snr_db"] = nullptr;
    entry["bits"] = nullptr;
    entry["problem"] = fit.problem;
    return entry;
  }
  entry["snr_db"] = finite_or_null(fit.snr_db());
  entry["bits"] = fit.bits;
  entry["exact"] = fit.noise_power == 0.0;
  entry["signal_power"] = finite_or_null(fit.signal_power);
  entry["noise_power"] = finite_or_null(fit.noise_power);
  entry["max_abs_error"] = finite_or_null(fit.max_abs_error);
  entry["became_zero"] = share(fit.became_zero, count);
  entry["saturated"] = share(fit.saturated, count);
  entry["scales"] = fit.scales;
  entry["lowest_scales"] = fit.lowest_scales;
  entry["highest_scales"] = fit.highest_scales;
  return entry;
}

}  // namespace

CLI::Option* add_candidates(CLI::App& app, Candidates& candidates) {
  std::vector<std::string> schemes;
  for (const tensorcast::SchemeCandidate& each : tensorcast::default_scheme_candidates()) {
    schemes.push_back(each.scheme);
  }
  return add_read_all(
             app, "--candidates", candidates,
             fmt::format(
                 "types to try (default float16,bfloat16,float8_e4m3fn,float8_e5m2 on floating-point tensors), and "
                 "schemes with their recipes, such as nvfp4 or mxfp4:even; \"schemes\": {}",
                 fmt::join(schemes, ",")),
             read_candidate)
      ->delimiter(',')
      ->option_text("TYPE|SCHEME[:RECIPE],...|all");
}

std::string schemes_table(std::span<const Inspected> tensors) {
  Table table({{"tensor"},
               {"quantized to"},
               {"SNR", Align::right},
               {"bits", Align::right},
               {"to zero", Align::right},
               {"saturated", Align::right},
               {"max abs error", Align::right},
               {"scales at limits", Align::right}});
  for (const Inspected& tensor : tensors) {
    if (!tensor.stats) continue;
    const TensorStats& stats = *tensor.stats;
    std::vector<std::size_t> order(stats.schemes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const SchemeFit &x = stats.schemes[a], &y = stats.schemes[b];
      if (x.problem.empty() != y.problem.empty()) return x.problem.empty();
      return x.problem.empty() && x.snr_db() > y.snr_db();
    });
    std::string shown = shown_name(tensor.summary);
    for (const std::size_t i : order) {
      const SchemeFit& fit = stats.schemes[i];
      if (!fit.problem.empty()) {
        table.add_row({std::move(shown), name_of(fit), printable(fit.problem)});
      } else {
        table.add_row({std::move(shown), name_of(fit), decibel_text(fit.snr_db()), fmt::format("{:.4g}", fit.bits),
                       percent_text(fit.became_zero, stats.count), percent_text(fit.saturated, stats.count),
                       short_number(fit.max_abs_error), grouped(fit.lowest_scales + fit.highest_scales)});
      }
      shown.clear();  // the name is printed once, above its candidates
    }
  }
  return table.empty() ? "" : "\n" + table.to_string();
}

Json candidates_json(const TensorStats& stats) {
  Json list = Json::array();
  struct Place {
    double snr, bits;
    std::size_t index;
  };
  std::vector<Place> places;
  for (const SchemeFit& fit : stats.schemes) {
    if (fit.problem.empty()) places.push_back({fit.snr_db(), fit.bits, list.size()});
    list.push_back(fit_json(fit, stats.count));
  }
  for (const auto& [dtype, report] : stats.candidates) {
    const int bits = tensorcast::bit_width(dtype);
    places.push_back({report.snr_db(), static_cast<double>(bits), list.size()});
    list.push_back({{"scheme", tensorcast::name(dtype)},
                    {"recipe", nullptr},
                    {"snr_db", finite_or_null(report.snr_db())},
                    {"bits", bits},
                    {"exact", report.inexact == 0},
                    {"became_zero", share(report.underflowed_to_zero, stats.count)},
                    {"saturated", share(report.saturated + report.overflowed, stats.count)}});
  }
  std::ranges::stable_sort(
      places, [](const Place& a, const Place& b) { return a.snr != b.snr ? a.snr > b.snr : a.bits < b.bits; });
  for (std::size_t rank = 0; rank < places.size(); ++rank) list[places[rank].index]["rank"] = rank + 1;
  return list;
}

std::string candidates_page(const std::string& title, std::span<const Inspected> tensors) {
  Json data = {{"title", title}, {"tensors", Json::array()}};
  for (const Inspected& tensor : tensors) {
    if (!tensor.stats || (tensor.stats->schemes.empty() && tensor.stats->candidates.empty())) continue;
    data["tensors"].push_back({{"name", tensor.summary.name},
                               {"shape", tensor.summary.shape},
                               {"dtype", tensorcast::name(tensor.summary.dtype)},
                               {"count", tensor.stats->count},
                               {"min", finite_or_null(tensor.stats->min)},
                               {"max", finite_or_null(tensor.stats->max)},
                               {"exponents", tensor.stats->exponents},
                               {"candidates", candidates_json(*tensor.stats)}});
  }
  std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  // No text in it ends the script.
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  std::string page = page_of_candidates;
  constexpr std::string_view place = "%DATA%";
  return page.replace(page.find(place), place.size(), text);
}

}  // namespace tcast
