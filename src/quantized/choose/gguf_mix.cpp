// SPDX-License-Identifier: Apache-2.0
// As llama-quant.cpp of llama.cpp chooses (in llama-cpp-python 0.3.36), of which the tables below are the facts.
#include "quantized/choose/gguf_mix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>

#include "block/format/gguf_block.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "formats/metadata_text.hpp"
#include "quantized/names/architectures.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {

enum class MixPart : std::uint8_t { output, embedding, values, keys, attention_output, down, other };

// When a rule holds: `place` is that of the tensor among those of its part, or of its layer.
enum class MixCase : std::uint8_t {
  always,
  more_bits,    // the first and the last eighth, and every third place between them
  first_2,      // places 0 and 1
  first_4,      // places 0 to 3
  sixteenth,    // the first sixteenth
  eighth,       // the first eighth
  own_eighth,   // the same, without an importance matrix
  many_groups,  // 4 or more heads share keys and values
  // Of the architecture falcon; its rules come first, and end with `falcon`.
  falcon_sixteenth,
  falcon_more_bits,
  falcon,
  eight_experts,
};

struct MixRule {
  MixPart part;
  MixCase holds;
  std::string_view type;  // empty: that of the mixture
};

constexpr std::size_t most_rules = 9;

struct GgufMix {
  std::string_view name;
  std::uint32_t file_type;
  std::string_view type;                       // of tensors that no rule is for
  std::string_view output = "q6_k";            // of the output, where its blocks fit
  std::array<MixRule, most_rules> rules = {};  // the first that holds; the last ones have no type and no case
  std::size_t rule_count = 0;
};

namespace {

template <std::size_t count>
constexpr GgufMix mix_of(std::string_view name, std::uint32_t file_type, std::string_view type,
                         const MixRule (&rules)[count]) {
  GgufMix mix{name, file_type, type};
  std::copy_n(rules, count, mix.rules.begin());
  mix.rule_count = count;
  return mix;
}

// With 8 experts, values and keys have q8_0 in every mixture.
constexpr auto mixes = [] {
  using enum MixPart;
  using enum MixCase;
  constexpr MixRule expert_output{attention_output, eight_experts, "q5_k"};
  return std::to_array<GgufMix>({
      {"q4_0", 2, "q4_0"},
      {"q4_1", 3, "q4_1"},
      {"q8_0", 7, "q8_0", "q8_0"},
      {"q5_0", 8, "q5_0"},
      {"q5_1", 9, "q5_1"},
      mix_of("q2_k", 10, "q2_k",
             {{values, many_groups, "q4_k"},
              {values, always, "q3_k"},
              {down, always, "q3_k"},
              {attention_output, falcon, ""},
              expert_output,
              {attention_output, always, "q3_k"}}),
      mix_of("q3_k_s", 11, "q3_k", {{attention_output, falcon, ""}, expert_output}),
      mix_of("q3_k_m", 12, "q3_k",
             {{values, first_2, "q5_k"},
              {values, always, "q4_k"},
              {down, sixteenth, "q5_k"},
              {down, falcon_more_bits, "q4_k"},
              {down, falcon, ""},
              {down, always, "q4_k"},
              {attention_output, falcon, ""},
              expert_output,
              {attention_output, always, "q4_k"}}),
      mix_of("q3_k_l", 13, "q3_k",
             {{values, always, "q5_k"},
              {down, falcon, "q4_k"},
              {down, always, "q5_k"},
              {attention_output, falcon, "q4_k"},
              {attention_output, eight_experts, ""},
              {attention_output, always, "q5_k"}}),
      mix_of("q4_k_s", 14, "q4_k",
             {{values, first_4, "q5_k"},
              {down, falcon, ""},
              {down, eighth, "q5_k"},
              {attention_output, falcon, ""},
              expert_output}),
      mix_of("q4_k_m", 15, "q4_k",
             {{values, more_bits, "q6_k"},
              {down, falcon_sixteenth, "q6_k"},
              {down, falcon_more_bits, "q5_k"},
              {down, falcon, ""},
              {down, more_bits, "q6_k"},
              {attention_output, falcon, ""},
              expert_output}),
      {"q5_k_s", 16, "q5_k"},
      mix_of("q5_k_m", 17, "q5_k", {{values, more_bits, "q6_k"}, {down, more_bits, "q6_k"}}),
      {"q6_k", 18, "q6_k"},
      mix_of(
          "iq4_nl", 25, "iq4_nl",
          {{values, many_groups, "q5_k"}, {down, own_eighth, "q5_k"}, {attention_output, falcon, ""}, expert_output}),
      mix_of(
          "iq4_xs", 30, "iq4_xs",
          {{values, many_groups, "q5_k"}, {down, own_eighth, "q5_k"}, {attention_output, falcon, ""}, expert_output}),
  });
}();

// llama-quantize's short names.
struct MixAlias {
  std::string_view name, mix;
};
constexpr MixAlias mix_aliases[] = {{"q3_k", "q3_k_m"}, {"q4_k", "q4_k_m"}, {"q5_k", "q5_k_m"}};

// What a type of 256 columns becomes where columns are no multiple of 256.
struct ShortType {
  std::string_view type, becomes;
};
constexpr ShortType short_types[] = {{"iq4_xs", "iq4_nl"}, {"q2_k", "q4_0"}, {"q3_k", "q4_0"},
                                     {"q4_k", "q5_0"},     {"q5_k", "q5_1"}, {"q6_k", "q8_0"}};

// Tensors whose names have one of these stay: small ones, and those of parts that are no layers of a language model.
constexpr std::string_view kept_names =
    "_norm.weight ffn_gate_inp.weight ffn_gate_tid2eid.weight altup laurel per_layer_model_proj ssm_conv1d "
    "shortconv.conv.weight indexer.k_proj.weight indexer.q_proj.weight time_mix_first.weight time_mix_w0.weight "
    "time_mix_w1.weight time_mix_w2.weight time_mix_v0.weight time_mix_v1.weight time_mix_v2.weight "
    "time_mix_a0.weight time_mix_a1.weight time_mix_a2.weight time_mix_g1.weight time_mix_g2.weight "
    "time_mix_decay_w1.weight time_mix_decay_w2.weight time_mix_lerp_fused.weight attn_rel_b.weight "
    ".position_embd sam.pos_embd sam.neck. sam.net_ .rel_pos .patch_embd .patch_merger a.rvq.codebook "
    "mm.a.code_embd";

// Columns that a type's blocks have.
std::int64_t mix_block_columns(std::string_view type) noexcept {
  const GgufBlock block = block::gguf_block_of(type);
  return block == GgufBlock::none ? 1 : static_cast<std::int64_t>(block_size(block).elements);
}

bool is_kept_in_mix(const formats::TensorInfo& tensor) {
  // A matrix of one row is a vector to ggml.
  const bool has_rows = std::any_of(tensor.shape.begin(), tensor.shape.end() - (tensor.shape.empty() ? 0 : 1),
                                    [](std::int64_t extent) { return extent > 1; });
  const std::string& name = tensor.name;
  if (!has_rows || !name.ends_with("weight")) return true;
  if (name == "position_embd.weight" || name == "token_types.weight") return true;
  return std::ranges::any_of(list_words(kept_names),
                             [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

MixPart mix_part_of(std::string_view name) {
  using enum MixPart;
  struct Word {
    std::string_view word;
    MixPart part;
  };
  if (name == "output.weight") return output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return embedding;
  constexpr Word words[] = {
      {"attn_qkv.weight", values}, {"attn_kv_b.weight", values}, {"attn_v.weight", values},
      {"attn_k.weight", keys},     {"attn_q.weight", other},     {"attn_output.weight", attention_output},
      {"ffn_up", other},           {"ffn_gate", other},          {"ffn_down", down}};
  for (const Word& word : words) {
    if (name.find(word.word) != std::string_view::npos) return word.part;
  }
  return other;
}

// The N of "blk.N."; -1: the name does not begin like that.
std::int64_t mix_layer_of(std::string_view name) {
  constexpr std::string_view prefix = "blk.";
  std::int64_t layer = -1;
  if (!name.starts_with(prefix)) return layer;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + prefix.size(), end, layer);
  return error == std::errc() && last != end && *last == '.' ? layer : -1;
}

struct MixPlace {
  std::int64_t place = 0, places = 0;

  [[nodiscard]] bool is_in_first(std::int64_t parts) const noexcept { return place < places / parts; }
  [[nodiscard]] bool gets_more_bits() const noexcept {
    return is_in_first(8) || place >= 7 * places / 8 || (place - places / 8) % 3 == 2;
  }
};

constexpr std::string_view raised_to_q5_k[] = {"q3_k", "q4_k"};

class MixTypes {
 public:
  MixTypes(const GgufMix& mix, const MixModel& model, bool has_importance)
      : mix_(mix), model_(model), has_importance_(has_importance) {}

  std::vector<std::string_view> of(std::span<const formats::TensorInfo> tensors) {
    // Tensors are counted in the order of layers, and of names within them.
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const std::int64_t layer_a = mix_layer_of(tensors[a].name), layer_b = mix_layer_of(tensors[b].name);
      return layer_a != layer_b ? layer_a < layer_b : tensors[a].name < tensors[b].name;
    });
    for (const formats::TensorInfo& tensor : tensors) {
      is_tied_ = is_tied_ && tensor.name != "output.weight";
      if (mix_part_of(tensor.name) == MixPart::values) ++all_values_;
    }
    std::vector<std::string_view> types(tensors.size());
    for (const std::size_t i : order) {
      if (!is_kept_in_mix(tensors[i])) types[i] = fitted(type_of(tensors[i]), tensors[i].shape.back());
    }
    return types;
  }

 private:
  std::string_view type_of(const formats::TensorInfo& tensor) {
    using enum MixPart;
    const MixPart part = mix_part_of(tensor.name);
    if (part == output || (part == embedding && is_tied_)) {
      if (model_.architecture == "falcon" || tensor.shape.back() % mix_block_columns(mix_.type) != 0) return "q8_0";
      return mix_.output;
    }
    MixPlace place;
    if (part == values) place = {values_++, all_values_};
    if (part == down) {
      place = {downs_++, model_.layers};
      if (model_.experts > 1) place.place = mix_layer_of(tensor.name);  // experts are in no order
    }
    const bool has_eight = model_.experts == 8;
    if (has_eight && (part == values || part == keys)) return "q8_0";
    std::string_view type = mix_.type;
    const auto* const end = mix_.rules.begin() + mix_.rule_count;
    const auto* const rule = std::find_if(
        mix_.rules.begin(), end, [&](const MixRule& each) { return each.part == part && holds(each.holds, place); });
    if (rule != end && !rule->type.empty()) type = rule->type;
    // Of models of 70 billion weights, in which eight heads share values.
    if (part == values && is_70b() && contains(raised_to_q5_k, type)) return "q5_k";
    return type;
  }

  [[nodiscard]] bool is_falcon() const noexcept { return model_.architecture == "falcon"; }
  [[nodiscard]] bool holds(MixCase condition, const MixPlace& at) const noexcept {
    using enum MixCase;
    switch (condition) {
      case always:
        return true;
      case more_bits:
        return at.gets_more_bits();
      case first_2:
        return at.place < 2;
      case first_4:
        return at.place < 4;
      case sixteenth:
        return at.is_in_first(16);
      case eighth:
        return at.is_in_first(8);
      case own_eighth:
        return !has_importance_ && at.is_in_first(8);
      case many_groups:
        return model_.key_value_heads != 0 && model_.heads / model_.key_value_heads >= 4;
      case falcon_sixteenth:
        return is_falcon() && at.is_in_first(16);
      case falcon_more_bits:
        return is_falcon() && at.gets_more_bits();
      case falcon:
        return is_falcon();
      case eight_experts:
        return model_.experts == 8;
    }
    return false;
  }

  [[nodiscard]] bool is_70b() const noexcept {
    const std::string& name = model_.architecture;
    if (name == "llama") return model_.layers == 80 && model_.heads != model_.key_value_heads;
    if (name == "jais2") return model_.layers == 68;
    return model_.layers == 80 && (name == "qwen2" || name == "deci" || name == "olmo");
  }

  // The type, or the one that llama-quantize takes where columns are not whole blocks.
  static std::string_view fitted(std::string_view type, std::int64_t columns) {
    if (columns % mix_block_columns(type) == 0) return type;
    const auto* const found = std::ranges::find(short_types, type, &ShortType::type);
    if (found != std::end(short_types) && columns % mix_block_columns(found->becomes) == 0) return found->becomes;
    return "float16";
  }

  const GgufMix& mix_;
  const MixModel& model_;
  const bool has_importance_;
  bool is_tied_ = true;
  std::int64_t all_values_ = 0, values_ = 0, downs_ = 0;
};

}  // namespace

Result<const GgufMix*> find_mix(std::string_view name) {
  const auto* const alias =
      std::ranges::find_if(mix_aliases, [&](const MixAlias& each) { return is_same_name(each.name, name); });
  if (alias != std::end(mix_aliases)) name = alias->mix;
  const auto* const found =
      std::ranges::find_if(mixes, [&](const GgufMix& each) { return is_same_name(each.name, name); });
  if (found != mixes.end()) return found;
  return invalid(fmt::format("there is no mixture \"{}\"", name),
                 fmt::format("write one of {}", fmt::join(mix_names(), ", ")));
}

std::uint32_t file_type_of(const GgufMix& mix) noexcept { return mix.file_type; }

Result<MixModel> mix_model_of(const formats::Metadata& metadata) {
  const auto text_of = [&](std::string_view key) -> std::string_view {
    const std::string* const text = formats::find_text(metadata, key);
    return text == nullptr ? std::string_view() : std::string_view(*text);
  };
  MixModel model{.architecture = std::string(text_of("general.architecture"))};
  // A number, or the first of one for each layer.
  const auto number_of = [&](std::string_view key) -> std::optional<std::int64_t> {
    std::string_view text = text_of(fmt::format("{}.{}", model.architecture, key));
    if (text.starts_with('[')) text.remove_prefix(1);
    std::int64_t number = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && last != text.data() ? std::optional(number) : std::nullopt;
  };
  const std::optional<std::int64_t> layers = number_of("block_count"), heads = number_of("attention.head_count");
  if (model.architecture.empty() || !layers || *layers <= 0) {
    return unsupported("the file does not say how many layers its model has, which mixtures depend on",
                       "llama.cpp's converter writes general.architecture and ARCHITECTURE.block_count");
  }
  if (model.architecture == "glm5-next") {
    return unsupported("llama-quantize has rules for glm5-next that are not known here",
                       "rules name types for tensors");
  }
  model.layers = *layers;
  model.heads = heads.value_or(0);
  model.key_value_heads = number_of("attention.head_count_kv").value_or(model.heads);
  model.experts = number_of("expert_count").value_or(0);
  return model;
}

std::vector<std::string_view> types_in_mix(const GgufMix& mix, const MixModel& model,
                                           std::span<const formats::TensorInfo> tensors, bool has_importance) {
  return MixTypes(mix, model, has_importance).of(tensors);
}

}  // namespace tensorcast::quantized

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::vector<std::string_view> mix_names() {
  std::vector<std::string_view> names;
  for (const quantized::GgufMix& mix : quantized::mixes) names.push_back(mix.name);
  return names;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
