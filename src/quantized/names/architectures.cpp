// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/architectures.hpp"

#include <algorithm>
#include <ranges>

namespace tensorcast::quantized {

const Architecture* find_architecture(std::string_view model_type) noexcept {
  const std::span<const Architecture> rows = all_architectures();
  const auto row = std::ranges::lower_bound(rows, model_type, {}, &Architecture::model_type);
  return row == rows.end() || row->model_type != model_type ? nullptr : &*row;
}

std::vector<std::string_view> list_words(std::string_view list) {
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(list, ' ')) {
    if (!word.empty()) words.emplace_back(word.begin(), word.end());
  }
  return words;
}

bool lists(std::string_view list, std::string_view word) {
  return std::ranges::any_of(std::views::split(list, ' '),
                             [=](const auto& each) { return std::ranges::equal(each, word); });
}

}  // namespace tensorcast::quantized
