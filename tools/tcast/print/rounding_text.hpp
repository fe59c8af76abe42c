// SPDX-License-Identifier: Apache-2.0
// One value by every word of `rounding`: both neighbours, how far they are, and which word gives which.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "print/report_json.hpp"
#include "tensorcast/explain.hpp"

namespace tcast {

struct Neighbour {
  tensorcast::Explanation value;
  std::vector<std::string> words;  // that give it
};

// What a value becomes in one type.
struct EveryRounding {
  tensorcast::DType dtype = tensorcast::DType::undefined;
  std::vector<Neighbour> neighbours = {};  // the result of toward_negative first; one if all words give it
  std::vector<Neighbour> refused = {};     // errors that the options demand, and the words that they are of
  std::optional<double> share_of_upper =
      {};  // how often stochastic rounding gives the last of two, where distances tell
};

// Errors: those of explain().
[[nodiscard]] tensorcast::Result<EveryRounding> by_every_word(std::string_view literal, tensorcast::DType from,
                                                              tensorcast::DType to,
                                                              const tensorcast::CastOptions& options);

[[nodiscard]] std::string rounding_table(const std::vector<EveryRounding>& rows, bool full);
[[nodiscard]] Json rounding_json(const EveryRounding& row);

}  // namespace tcast
