// SPDX-License-Identifier: Apache-2.0
#include "print/rounding_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "dtype/try.hpp"
#include "options/cast_options.hpp"
#include "print/decimal_text.hpp"
#include "print/text_table.hpp"
#include "print/value_text.hpp"

namespace tcast {
namespace {

using tensorcast::Explanation;
using tensorcast::Result;
using tensorcast::Rounding;

double as_double(const std::string& decimal) { return std::strtod(decimal.c_str(), nullptr); }

// How often the upper neighbour is taken, by the distances of both; none if the number is not between them, as where
// it overflows, wraps around or loses its sign.
std::optional<double> share_of_upper(const std::vector<Neighbour>& neighbours) {
  const auto has_distance = [](const Neighbour& one) { return !one.value.exact_error.empty(); };
  if (neighbours.size() != 2 || !std::all_of(neighbours.begin(), neighbours.end(), has_distance)) return {};
  const double to_lower = -as_double(neighbours[0].value.exact_error);
  const double to_upper = as_double(neighbours[1].value.exact_error);
  const bool is_between = to_lower >= 0.0 && to_upper >= 0.0 && to_lower + to_upper > 0.0;
  if (!is_between || !std::isfinite(to_lower + to_upper)) return {};
  return to_lower / (to_lower + to_upper);
}

}  // namespace

Result<EveryRounding> by_every_word(std::string_view literal, tensorcast::DType from, tensorcast::DType to,
                                    const tensorcast::CastOptions& options) {
  EveryRounding result{.dtype = to, .neighbours = {}, .refused = {}, .share_of_upper = {}};
  for (const Rounding word : {Rounding::toward_negative, Rounding::toward_positive, Rounding::nearest_even,
                              Rounding::nearest_away, Rounding::toward_zero, Rounding::to_odd}) {
    tensorcast::CastOptions by_word = options;
    by_word.rounding = word;
    by_word.seed = 0;
    Explanation value = TRY(tensorcast::explain(literal, from, to, by_word));
    std::vector<Neighbour>& others = value.error.empty() ? result.neighbours : result.refused;
    const auto same = [&](const Neighbour& one) {
      return one.value.code == value.code && one.value.exact_value == value.exact_value &&
             one.value.error == value.error;
    };
    auto place = std::find_if(others.begin(), others.end(), same);
    if (place == others.end()) place = others.insert(others.end(), {std::move(value), {}});
    place->words.emplace_back(tensorcast::options::roundings.word[static_cast<std::size_t>(word)]);
  }
  if (result.refused.empty()) result.share_of_upper = share_of_upper(result.neighbours);
  return result;
}

namespace {

// How often stochastic rounding gives neighbour `i`: "60 %"; empty if the distances do not tell.
std::string stochastic_share_text(const EveryRounding& row, std::size_t i) {
  if (row.neighbours.size() == 1 && row.refused.empty()) return "100 %";
  if (!row.share_of_upper) return {};
  return fmt::format("{:.3g} %", 100.0 * (i == 0 ? 1.0 - *row.share_of_upper : *row.share_of_upper));
}

}  // namespace

std::string rounding_table(const std::vector<EveryRounding>& rows, bool full) {
  constexpr std::size_t longest_value = 30;
  Table table(
      {{"type"}, {"code", Align::right}, {"value"}, {"error", Align::right}, {"stochastic", Align::right}, {"by"}});
  for (const EveryRounding& row : rows) {
    const std::string type(tensorcast::name(row.dtype));
    const auto words = [](const Neighbour& one) { return fmt::format("{}", fmt::join(one.words, ", ")); };
    for (const Neighbour& one : row.refused) {
      table.add_row({type, "", one.value.error, "", "", row.neighbours.empty() ? "" : words(one)});
    }
    for (std::size_t i = 0; i < row.neighbours.size(); ++i) {
      const Neighbour& one = row.neighbours[i];
      table.add_row({type, one.value.dtype == tensorcast::DType::string ? "" : code_text(one.value),
                     full ? one.value.exact_value : shortened_decimal(one.value.exact_value, longest_value),
                     one.value.exact_error.empty() || one.value.exact_error == "0"
                         ? one.value.exact_error
                         : rounded_decimal(one.value.exact_error),
                     stochastic_share_text(row, i), words(one)});
    }
  }
  return table.to_string();
}

Json rounding_json(const EveryRounding& row) {
  Json json = {{"dtype", tensorcast::name(row.dtype)}};
  if (row.neighbours.empty()) {
    json["error"] = row.refused.front().value.error;
    return json;
  }
  json["neighbours"] = Json::array();
  for (const Neighbour& one : row.neighbours) {
    json["neighbours"].push_back({{"code", code_text(one.value)},
                                  {"exact_value", one.value.exact_value},
                                  {"exact_error", one.value.exact_error},
                                  {"roundings", one.words}});
  }
  for (const Neighbour& one : row.refused) {
    json["refused"].push_back({{"error", one.value.error}, {"roundings", one.words}});
  }
  if (row.share_of_upper) json["share_of_upper"] = *row.share_of_upper;
  return json;
}

}  // namespace tcast
