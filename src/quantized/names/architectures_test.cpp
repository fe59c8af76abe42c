// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/architectures.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tensorcast/file.hpp"

namespace tensorcast::quantized {
namespace {

using Words = std::vector<std::string_view>;

// Read by hand from transformers 5.24.
TEST(Architectures, SayWhatTheirSourcesSay) {
  EXPECT_EQ(find_architecture("whisper")->tied_heads, "proj_out");
  EXPECT_EQ(find_architecture("bert")->tied_heads, "cls.predictions.decoder");
  EXPECT_EQ(list_words(find_architecture("deepseek_v3")->float32), (Words{"e_score_correction_bias", "gate.weight"}));
  EXPECT_EQ(find_architecture("t5")->float32_in_float16, "wo");
  EXPECT_EQ(find_architecture("t5")->float32, "");
  EXPECT_EQ(list_words(find_architecture("gpt2")->conv1d), (Words{"c_attn", "c_fc", "c_proj", "q_attn"}));
  EXPECT_EQ(find_architecture("t5")->reads_weight, "wo");
  EXPECT_EQ(list_words(find_architecture("mamba")->reads_weight), (Words{"dt_proj", "out_proj", "x_proj"}));
  EXPECT_EQ(list_words(find_architecture("siglip")->reads_weight), (Words{"*", "attention.out_proj"}));
  EXPECT_EQ(find_architecture("llama"), nullptr);
  EXPECT_EQ(find_architecture(""), nullptr);
}

TEST(Architectures, AreInOrderOnce) {
  const auto rows = all_architectures();
  EXPECT_TRUE(std::ranges::is_sorted(rows, {}, &Architecture::model_type));
  EXPECT_EQ(std::ranges::adjacent_find(rows, {}, &Architecture::model_type), rows.end());
  for (const Architecture& row : rows) EXPECT_EQ(find_architecture(row.model_type), &row);
}

TEST(Architectures, ListsAreWords) {
  EXPECT_EQ(list_words(""), Words());
  EXPECT_EQ(list_words("a"), Words{"a"});
  EXPECT_EQ(list_words(" a  b.c "), (Words{"a", "b.c"}));
}

}  // namespace
}  // namespace tensorcast::quantized
