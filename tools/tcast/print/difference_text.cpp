// SPDX-License-Identifier: Apache-2.0
#include "print/difference_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "print/result_json.hpp"
#include "print/text_table.hpp"
#include "process/printable.hpp"

namespace tcast {

namespace {

using tensorcast::TensorDifference;

constexpr std::size_t most_differences = 20;

std::string change_of(const TensorDifference& tensor, std::string_view unknown) {
  const auto type = [&](tensorcast::DType dtype) {
    return dtype == tensorcast::DType::undefined ? unknown : name(dtype);
  };
  if (!tensor.in_b) return "only in A";
  if (!tensor.in_a) return "only in B";
  if (tensor.from_shape != tensor.to_shape) {
    return fmt::format("{} -> {}", shape_text(tensor.from_shape), shape_text(tensor.to_shape));
  }
  const std::string types = tensor.from == tensor.to ? std::string(type(tensor.from))
                                                     : fmt::format("{} -> {}", type(tensor.from), type(tensor.to));
  return types + (tensor.decoded ? ", decoded" : tensor.undecodable ? ", codes are not compared" : "");
}

std::vector<std::string> cells_of(const TensorDifference& tensor, std::string_view unknown) {
  if (!tensor.compared) return {printable(tensor.name), change_of(tensor, unknown)};
  return {printable(tensor.name),
          change_of(tensor, unknown),
          fmt::format("{} of {}", grouped(tensor.different), grouped(tensor.count)),
          specials_text({.infinities_made = tensor.infinities_made,
                         .infinities_lost = tensor.infinities_lost,
                         .nan_made = tensor.nan_made,
                         .nan_lost = tensor.nan_lost}),
          short_number(tensor.max_abs_error),
          short_number(tensor.max_rel_error),
          decibel_text(tensor.snr_db)};
}

}  // namespace

std::string differences_table(const std::string& kind, std::span<const TensorDifference* const> tensors, bool all,
                              std::string_view unknown) {
  if (tensors.empty()) return "";
  Table table({{kind},
               {"change"},
               {"elements differ", Align::right},
               {"Inf and NaN"},
               {"max abs error", Align::right},
               {"max rel error", Align::right},
               {"SNR", Align::right}});
  const std::size_t shown = all ? tensors.size() : std::min(tensors.size(), most_differences);
  for (const TensorDifference* tensor : tensors.first(shown)) table.add_row(cells_of(*tensor, unknown));
  const std::size_t more = tensors.size() - shown;
  return table.to_string() + (more == 0 ? "" : fmt::format("and {} more; --all lists them\n", more));
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
