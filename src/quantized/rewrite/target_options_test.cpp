// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/target_options.hpp"

#include <gtest/gtest.h>

#include <ranges>
#include <set>
#include <string>

#include "tensorcast/spelling.hpp"

namespace tensorcast::options {
namespace {

TEST(TargetOptions, AreThoseOfQuantizeUnderTheirNames) {
  std::set<std::string> shared;
  for_each(quantize_targets, [&](const auto& target) {
    for_each(quantize_options, [&](const auto& option) {
      if (std::string_view(target.name) == option.name) shared.insert(option.name);
    });
  });
  // A file has the numbers of the importance, and the largest magnitude is that of the weights.
  EXPECT_EQ(shared, (std::set<std::string>{"recipe", "compute_dtype", "group_size", "symmetric", "power_of_two_scales",
                                           "nonfinite", "clip", "importance"}));
  for_each(quantize_targets, [&](const auto& target) {
    for_each(quantize_options, [&](const auto& option) {
      if (std::string_view(target.name) != option.name || option.name == std::string_view("importance")) return;
      EXPECT_STREQ(target.help, option.convert_help);
      EXPECT_EQ(target.words.size(), option.words.size()) << option.name;
    });
  });
}

TEST(TargetOptions, AWeightGetsThoseOfItsScheme) {
  QuantizeTargets targets;
  targets.recipe = "modelopt";
  targets.group_size = 32;
  targets.symmetric = false;
  targets.power_of_two_scales = true;
  targets.compute_dtype = DType::bfloat16;
  targets.nonfinite = NonFiniteWeights::tool;
  targets.clip = Clip::mse;
  targets.importance = "importance.gguf";
  const QuantizeOptions groups = options_for(targets, "int4-group");
  EXPECT_EQ(groups.recipe, "modelopt");
  EXPECT_EQ(groups.group_size, 32);
  EXPECT_FALSE(groups.symmetric);
  EXPECT_FALSE(groups.power_of_two_scales) << "it is of fp8-block";
  EXPECT_EQ(groups.compute_dtype, DType::bfloat16);
  EXPECT_EQ(groups.nonfinite, NonFiniteWeights::tool);
  EXPECT_EQ(groups.clip, Clip::mse);
  EXPECT_TRUE(groups.importance.empty());
  const QuantizeOptions blocks = options_for(targets, "fp8-block");
  EXPECT_EQ(blocks.group_size, 0);
  EXPECT_TRUE(blocks.symmetric);
  EXPECT_TRUE(blocks.power_of_two_scales);
}

TEST(TargetOptions, NameAllSpellingsThatAreWritten) {
  std::set<std::string> names, writers;
  std::string text(written_spelling_names);
  text.replace(text.find(" or "), 4, ", ");
  for (const auto word : std::views::split(text, std::string_view(", "))) names.emplace(word.begin(), word.end());
  for (const std::string_view writer : written_spellings()) writers.emplace(writer);
  EXPECT_EQ(names, writers);
}

TEST(TargetOptions, CandidatesAreSchemes) {
  for (const SchemeCandidate& candidate : default_scheme_candidates()) {
    EXPECT_NE(find_quantize_recipe(candidate.scheme), nullptr) << candidate.scheme;
  }
}

}  // namespace
}  // namespace tensorcast::options
