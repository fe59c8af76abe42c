#include "difference_text.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "printable.hpp"
#include "result_json.hpp"

namespace tcast {

std::vector<std::string> difference_cells(const tensorcast::TensorDifference& tensor) {
  return {fmt::format("{} of {}", grouped(tensor.different), grouped(tensor.count)),
          specials_text({.infinities_made = tensor.infinities_made,
                         .infinities_lost = tensor.infinities_lost,
                         .nan_made = tensor.nan_made,
                         .nan_lost = tensor.nan_lost}),
          short_number(tensor.max_abs_error), short_number(tensor.max_rel_error), decibel_text(tensor.snr_db)};
}

std::vector<Column> difference_columns(const std::string& kind) {
  return {{kind},
          {"change"},
          {"elements differ", Align::right},
          {"Inf and NaN"},
          {"max abs error", Align::right},
          {"max rel error", Align::right},
          {"SNR", Align::right}};
}

bool is_worse(const tensorcast::TensorDifference& x, const tensorcast::TensorDifference& y) {
  const auto specials = [](const tensorcast::TensorDifference& tensor) {
    return tensor.infinities_made + tensor.infinities_lost + tensor.nan_made + tensor.nan_lost;
  };
  if (specials(x) != specials(y)) return specials(x) > specials(y);
  const auto order = [](double snr_db) {
    return std::isnan(snr_db) ? -std::numeric_limits<double>::infinity() : snr_db;
  };
  return order(x.snr_db) < order(y.snr_db);
}

std::string specials_text(const Specials& specials) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), what);
  };
  add(specials.infinities_made, "Inf made");
  add(specials.infinities_lost, "Inf lost");
  add(specials.nan_made, "NaN made");
  add(specials.nan_lost, "NaN lost");
  return text;
}

void add_difference(Json& entry, const tensorcast::TensorDifference& tensor) {
  const Json all = result_json(tensor);
  for (auto member = all.find("count"); member != all.end(); ++member) entry[member.key()] = member.value();
}

}  // namespace tcast
