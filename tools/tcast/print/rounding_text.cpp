// SPDX-License-Identifier: Apache-2.0
#include "print/rounding_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

// How often the upper neighbour is taken, by the distances of both.
double share_of_upper(const std::vector<Neighbour>& neighbours) {
  if (neighbours.size() != 2) return 0.0;
  const double to_lower = std::fabs(as_double(neighbours[0].value.exact_error));
  const double to_upper = std::fabs(as_double(neighbours[1].value.exact_error));
  return to_lower / (to_lower + to_upper);
}

}  // namespace

Result<EveryRounding> by_every_word(std::string_view literal, tensorcast::DType from, tensorcast::DType to,
                                    const tensorcast::CastOptions& options) {
  EveryRounding result{.dtype = to, .error = {}, .neighbours = {}};
  for (const Rounding word : {Rounding::toward_negative, Rounding::toward_positive, Rounding::nearest_even,
                              Rounding::nearest_away, Rounding::toward_zero, Rounding::to_odd}) {
    tensorcast::CastOptions by_word = options;
    by_word.rounding = word;
    by_word.seed = 0;
    Explanation value = TRY(tensorcast::explain(literal, from, to, by_word));
    if (!value.error.empty()) {
      result.error = value.error;
      return result;
    }
    const auto same = [&](const Neighbour& one) {
      return one.value.code == value.code && one.value.exact_value == value.exact_value;
    };
    auto place = std::find_if(result.neighbours.begin(), result.neighbours.end(), same);
    if (place == result.neighbours.end()) {
      place = result.neighbours.insert(result.neighbours.end(), {std::move(value), {}});
    }
    place->words.emplace_back(tensorcast::options::roundings.word[static_cast<std::size_t>(word)]);
  }
  result.share_of_upper = share_of_upper(result.neighbours);
  return result;
}

std::string rounding_table(const std::vector<EveryRounding>& rows, bool full) {
  constexpr std::size_t longest_value = 30;
  Table table(
      {{"type"}, {"code", Align::right}, {"value"}, {"error", Align::right}, {"stochastic", Align::right}, {"by"}});
  for (const EveryRounding& row : rows) {
    const std::string type(tensorcast::name(row.dtype));
    if (!row.error.empty()) table.add_row({type, "", row.error});
    for (std::size_t i = 0; i < row.neighbours.size(); ++i) {
      const Neighbour& one = row.neighbours[i];
      const double share = row.neighbours.size() == 1 ? 1.0 : i == 0 ? 1.0 - row.share_of_upper : row.share_of_upper;
      table.add_row({type, one.value.dtype == tensorcast::DType::string ? "" : code_text(one.value),
                     full ? one.value.exact_value : shortened_decimal(one.value.exact_value, longest_value),
                     one.value.exact_error.empty() || one.value.exact_error == "0"
                         ? one.value.exact_error
                         : rounded_decimal(one.value.exact_error),
                     fmt::format("{:.3g} %", 100.0 * share), fmt::format("{}", fmt::join(one.words, ", "))});
    }
  }
  return table.to_string();
}

Json rounding_json(const EveryRounding& row) {
  Json json = {{"dtype", tensorcast::name(row.dtype)}};
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  json["neighbours"] = Json::array();
  for (const Neighbour& one : row.neighbours) {
    json["neighbours"].push_back({{"code", code_text(one.value)},
                                  {"exact_value", one.value.exact_value},
                                  {"exact_error", one.value.exact_error},
                                  {"roundings", one.words}});
  }
  if (row.neighbours.size() == 2) json["share_of_upper"] = row.share_of_upper;
  return json;
}

}  // namespace tcast
