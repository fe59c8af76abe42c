// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/tensor_kind.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "dtype/errors.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::array<std::string_view, 11> kind_names = {"embedding",   "attention", "feed-forward", "expert",
                                                         "router",      "norm",      "head",         "convolution",
                                                         "state-space", "scale",     "other"};

struct Clues {
  TensorKind kind;
  // Parts of names in lower case, between spaces; a leading or trailing '.' also matches an end of the name.
  std::string_view parts;
};

// The first clue that a name has decides, so that "self_attn.q_norm" is a norm and "experts.0.w1" is not "w1".
constexpr Clues clues[] = {
    {TensorKind::scale,
     "_scale_inv. _scale. _scales. _scale_2. _global_scale. .scale. .scales. .scale_weight. .scale_input. "
     ".qzeros. zero_point"},
    {TensorKind::state_space, ".a_log. .a_logs. .ssm_a. conv1d. .dt_bias."},
    {TensorKind::head,
     ".lm_head. .embed_out. .cls.predictions. .cls.seq_relationship. .classifier. .score. .qa_outputs. "
     ".output_projection."},
    {TensorKind::norm, "norm .ln_ .ln. .ln1. .ln2. .layer_scale"},
    {TensorKind::embedding, "embed _embd. .wte. .wpe. .shared.weight. .relative_attention_bias. .relative_position"},
    {TensorKind::router, ".router."},
    {TensorKind::feed_forward, ".ffn_gate.weight."},  // of GGUF; its routers are ffn_gate_inp
    {TensorKind::router, ".gate.weight. .gate.wg. .ffn_gate_inp .gate.e_score_correction_bias. _gate.weight."},
    {TensorKind::expert, "expert"},
    {TensorKind::attention, "attn attention .q_proj. .k_proj. .v_proj. .o_proj. _attn"},
    {TensorKind::feed_forward,
     "mlp feed_forward feedforward densereludense .ffn .ff. .fc1. .fc2. .intermediate. .output.dense. .up_proj. "
     ".gate_proj. .down_proj."},
    {TensorKind::convolution, "conv"},
};

// Biases of experts, tables and tokens of several rows, which no product multiplies.
bool is_vector_like(std::string_view tensor) noexcept {
  constexpr std::array<std::string_view, 7> ends = {"bias",    "_biases",   "_table",     "_token",
                                                    "_tokens", "registers", "_modulation"};
  return std::ranges::any_of(ends, [&](std::string_view end) { return tensor.ends_with(end); });
}

// Whether layers multiply matrices of this kind.
bool is_of_layers(TensorKind kind) noexcept {
  switch (kind) {
    case TensorKind::embedding:
    case TensorKind::head:
    case TensorKind::norm:
    case TensorKind::router:
    case TensorKind::state_space:
    case TensorKind::scale:
      return false;
    default:
      return true;
  }
}

// Whether a tensor of four dimensions or more is the kernel of a convolution, whatever its layer is called, as those of
// 1 x 1 of a UNet's attention are. Experts in one tensor may have as many.
bool is_kernel(TensorKind named, std::string_view tensor, std::size_t rank) noexcept {
  return rank >= 4 && is_of_layers(named) && (named != TensorKind::expert || tensor.ends_with(".weight."));
}

}  // namespace

TensorKind tensor_kind(std::string_view tensor, std::size_t rank) noexcept {
  // Long names are judged by their end, where modules name their weights.
  constexpr std::size_t longest = 250;
  std::array<char, longest + 2> buffer{};
  tensor.remove_prefix(tensor.size() - std::min(tensor.size(), longest));
  buffer[0] = '.';
  std::size_t size = 1;
  for (const char c : tensor) buffer[size++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  buffer[size++] = '.';
  const std::string_view name(buffer.data(), size);
  if (name == ".output.weight." || name == ".head.weight.") return TensorKind::head;
  for (const auto& [kind, parts] : clues) {
    const auto is_part = [&](const auto& part) {
      return name.find(std::string_view(part.begin(), part.end())) != std::string_view::npos;
    };
    if (std::ranges::none_of(std::views::split(parts, ' '), is_part)) continue;
    return is_kernel(kind, name, rank) ? TensorKind::convolution : kind;
  }
  return rank >= 3 ? TensorKind::convolution : TensorKind::other;
}

bool is_layer_matrix(std::string_view tensor, std::size_t rank) noexcept {
  return rank >= 2 && !is_vector_like(tensor) && is_of_layers(tensor_kind(tensor, rank));
}

std::string_view name(TensorKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kind_names) ? kind_names[index] : std::string_view();
}

Result<TensorKind> parse_tensor_kind(std::string_view name) {
  const auto* found = std::ranges::find(kind_names, name);
  if (found != kind_names.end()) return static_cast<TensorKind>(found - kind_names.begin());
  return invalid(fmt::format("\"{}\" is not a kind of tensors; there are {}", name, fmt::join(kind_names, ", ")));
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::file_conversion {

bool is_matrix(std::string_view tensor, std::size_t rank) noexcept {
  return rank >= 2 && !(is_vector_like(tensor) && is_of_layers(tensor_kind(tensor, rank)));
}

bool is_other_parameter(std::string_view tensor, std::size_t rank) noexcept {
  return rank == 2 && tensor.find('.') != std::string_view::npos && !tensor.ends_with(".weight");
}

bool is_table_or_norm(std::string_view module) noexcept {
  constexpr auto tables = std::to_array<std::string_view>(
      {"embed_tokens", "embed_tokens_per_layer", "tok_embeddings", "token_embeddings", "token_embedding",
       "word_embeddings", "position_embeddings", "position_embedding", "token_type_embeddings", "embed_positions",
       "embed_in", "embeddings", "embedding", "embed", "emb", "wte", "wpe", "shared", "relative_attention_bias"});
  std::string_view last = module.substr(module.rfind('.') + 1);
  if (std::ranges::find(tables, last) != tables.end()) return true;
  last = last.substr(0, last.find_last_not_of("_0123456789") + 1);
  return last.ends_with("norm") || last.ends_with("Norm") || last == "ln";
}

Tower tower_of(std::string_view name) noexcept {
  struct Word {
    std::string_view word, kind;
  };
  constexpr auto words = std::to_array<Word>({{"vision", "vision tower"},
                                              {"visual", "vision tower"},
                                              {"image_encoder", "vision tower"},
                                              {"audio_tower", "audio tower"},
                                              {"projector", "projector"}});
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    for (const Word& row : words) {
      if (part.find(row.word) != std::string_view::npos) return {part, row.kind};
    }
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return {};
}

}  // namespace tensorcast::file_conversion
