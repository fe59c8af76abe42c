// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/importance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/part_reader.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::string_view weight_word = ".weight";
constexpr std::string_view sums_word = ".in_sum2";
constexpr std::string_view counts_word = ".counts";

// Modules of a decoder layer in Hugging Face's models and Llama's own files, and llama.cpp's names for them, likely
// ones first. Weights that loaders join have one input, so the importance of one is that of all.
struct ModuleName {
  std::string_view module;
  std::array<std::string_view, 3> in_llama;
};
constexpr ModuleName attention_names[] = {
    {"q_proj", {"attn_q", "attn_qkv"}},
    {"k_proj", {"attn_k", "attn_qkv"}},
    {"v_proj", {"attn_v", "attn_qkv"}},
    {"qkv_proj", {"attn_qkv", "attn_q"}},
    {"o_proj", {"attn_output"}},
    {"q_a_proj", {"attn_q_a"}},
    {"q_b_proj", {"attn_q_b"}},
    {"kv_a_proj_with_mqa", {"attn_kv_a_mqa"}},
    {"kv_b_proj", {"attn_kv_b"}},
    {"wq", {"attn_q"}},
    {"wk", {"attn_k"}},
    {"wv", {"attn_v"}},
    {"wo", {"attn_output"}},
};
constexpr ModuleName feed_forward_names[] = {
    {"gate_proj", {"ffn_gate", "ffn_gate_up"}},
    {"up_proj", {"ffn_up", "ffn_gate_up"}},
    {"gate_up_proj", {"ffn_gate_up", "ffn_up", "ffn_gate"}},
    {"down_proj", {"ffn_down"}},
    {"w1", {"ffn_gate", "ffn_gate_up"}},
    {"w3", {"ffn_up", "ffn_gate_up"}},
    {"w2", {"ffn_down"}},
};

// What stands before "layers" in a model of text; a vision tower has layers, too, which no importance matrix counts.
constexpr std::string_view text_models[] = {"model", "language_model", "text_model", "transformer", "module"};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string_view> words_of(std::string_view module) {
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(module, '.')) words.emplace_back(word.begin(), word.end());
  return words;
}

struct PossibleName {
  std::string name;
  std::int64_t row = -1;
};

// Entries that llama.cpp may have for a module: "model.layers.7.mlp.up_proj" -> "blk.7.ffn_up", and for
// "model.layers.7.mlp.experts.3.up_proj" row 3 of "blk.7.ffn_up_exps", or "blk.7.ffn_up.3" of older files.
void add_names_in_llama(const std::string& module, std::vector<PossibleName>& names) {
  if (module == "lm_head" || module == "language_model.lm_head") return names.push_back({"output.weight"});
  const std::vector<std::string_view> words = words_of(module);
  std::size_t at = 0;
  while (at < words.size() && std::ranges::find(text_models, words[at]) != std::end(text_models)) ++at;
  // layers, the number, the block, perhaps experts and their number, the projection.
  if (words.size() < at + 4 || words.size() > at + 6 || words[at] != "layers" || !is_number(words[at + 1])) return;
  const std::string block = fmt::format("blk.{}.", words[at + 1]);
  const std::string_view part = words[at + 2], projection = words.back();
  const auto inner = std::span(words).subspan(at + 3, words.size() - at - 4);
  const bool is_attention = part == "self_attn" || part == "attention";
  if (!is_attention && part != "mlp" && part != "feed_forward" && part != "block_sparse_moe") return;
  const auto known = is_attention ? std::span<const ModuleName>(attention_names) : feed_forward_names;
  const auto found = std::ranges::find(known, projection, &ModuleName::module);
  if (found == known.end() || (is_attention && !inner.empty())) return;
  const bool is_shared = inner.size() == 1 && (inner[0] == "shared_expert" || inner[0] == "shared_experts");
  const bool is_expert = !inner.empty() && inner[0] == "experts" && (inner.size() == 1 || is_number(inner[1]));
  if (!inner.empty() && !is_shared && !is_expert) return;
  for (const std::string_view name : found->in_llama) {
    if (name.empty()) continue;
    const std::string base = block + std::string(name);
    if (!is_expert) {
      names.push_back({base + (is_shared ? "_shexp.weight" : ".weight")});
      continue;
    }
    if (inner.size() == 1) {
      names.push_back({base + "_exps.weight"});
      continue;
    }
    names.push_back({base + "_exps.weight", std::stoll(std::string(inner[1]))});
    names.push_back({fmt::format("{}.{}.weight", base, inner[1])});
  }
}

// The entries that a weight can have, likely ones first.
std::vector<PossibleName> names_of(const std::string& weight) {
  std::string module = weight;
  if (module.ends_with(weight_word)) module.resize(module.size() - weight_word.size());
  std::vector<PossibleName> names = {{weight}, {module + std::string(weight_word)}, {module}};
  add_names_in_llama(module, names);
  return names;
}

}  // namespace

Result<ImportanceFile> ImportanceFile::open(const std::string& path) {
  file_conversion::OpenedInput input = TRY(file_conversion::open_input(path, {}, {}));
  ImportanceFile made;
  made.input_ = std::move(input);
  const formats::Format& format = *made.input_.format;
  const auto& tensors = made.input_.reader->tensors();
  made.is_matrix_ = format.name == "gguf";
  const bool has_sums = std::any_of(tensors.begin(), tensors.end(),
                                    [](const formats::TensorInfo& each) { return each.name.ends_with(sums_word); });
  for (std::size_t i = 0; i < tensors.size(); ++i) made.places_.emplace(tensors[i].name, i);
  if (made.is_matrix_ ? has_sums : format.named_tensors) return made;
  return in_file(path, unsupported("the file has no importance of weights",
                                   "`importance` is an importance matrix of llama.cpp in GGUF, or safetensors of a "
                                   "number for each column of each weight"));
}

const formats::TensorInfo* ImportanceFile::tensor(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &input_.reader->tensors()[found->second];
}

ImportanceEntry ImportanceFile::find(const std::string& weight) const {
  for (const PossibleName& each : names_of(weight)) {
    if (tensor(is_matrix_ ? each.name + std::string(sums_word) : each.name) == nullptr) continue;
    return {.file = input_.file->path(), .name = each.name, .row = each.row, .version = version()};
  }
  return {};
}

std::string ImportanceFile::version() const {
  return fmt::format("{} {}", input_.file->size(), input_.file->modified_ns());
}

Result<std::vector<float>> ImportanceFile::numbers(const formats::TensorInfo& info, std::uint64_t first,
                                                   std::uint64_t count) const {
  const auto index = static_cast<std::size_t>(&info - input_.reader->tensors().data());
  if (info.problem) return *info.problem;
  std::vector<std::byte> bytes(storage_bytes(info.dtype, count));
  TRY(input_.reader->read(index, storage_bytes(info.dtype, first), bytes));
  std::vector<float> numbers(count);
  TRY(to_float(info.dtype, bytes, numbers));
  return numbers;
}

Result<std::vector<float>> ImportanceFile::read(const ImportanceEntry& entry) const {
  if (entry.file.empty()) return std::vector<float>();
  const auto wrong = [&](std::string message) {
    return in_file(input_.file->path(), of_tensor(entry.name, invalid(std::move(message))));
  };
  if (entry.version != version()) return wrong("the file of importance has changed since the conversion was planned");
  const formats::TensorInfo* const sums = tensor(is_matrix_ ? entry.name + std::string(sums_word) : entry.name);
  if (sums == nullptr) return wrong("it is not in the file of importance");
  const bool is_numeric = is_castable(sums->dtype) && bit_width(sums->dtype) % 8 == 0 &&
                          (family(sums->dtype) == Family::floating || family(sums->dtype) == Family::integer);
  if (!is_numeric) {
    return wrong(fmt::format("its importance is {}, and not numbers such as float32", sums->type_name()));
  }
  if (sums->count == 0) return wrong("it has no numbers");
  std::vector<float> counts;
  std::uint64_t rows = sums->shape.size() < 2 ? 1 : sums->count / static_cast<std::uint64_t>(sums->shape.back());
  if (is_matrix_) {
    const formats::TensorInfo* const counted = tensor(entry.name + std::string(counts_word));
    if (counted == nullptr) return wrong("the importance matrix lacks its counts");
    counts = TRY(numbers(*counted, 0, counted->count));
    rows = counts.size();
  }
  if (rows == 0 || sums->count % rows != 0) return wrong("its sums and counts do not fit together");
  const std::uint64_t columns = sums->count / rows;
  const std::uint64_t first = entry.row < 0 ? 0 : static_cast<std::uint64_t>(entry.row);
  if (first >= rows) return wrong(fmt::format("it has {} rows of importance, and none for expert {}", rows, first));
  Result<std::vector<float>> made = numbers(*sums, first * columns, entry.row < 0 ? sums->count : columns);
  if (!made || !is_matrix_) return made;
  for (std::size_t i = 0; i < made->size(); ++i) {
    const float count = counts[first + i / columns];
    (*made)[i] = count > 0.0f ? (*made)[i] / count : 1.0f;
  }
  return made;
}

Result<std::shared_ptr<const ImportanceFile>> open_importance(const std::string& path,
                                                              std::span<const std::string> weights) {
  std::shared_ptr<const ImportanceFile> opened;
  if (path.empty() || weights.empty()) return opened;
  opened = std::make_shared<const ImportanceFile>(TRY(ImportanceFile::open(path)));
  if (std::ranges::any_of(weights, [&](const std::string& name) { return !opened->find(name).file.empty(); })) {
    return opened;
  }
  return in_file(path, invalid("the file has the importance of none of the weights",
                               fmt::format("it needs names such as \"{}\"", weights[0])));
}

std::string search_text(Clip clip, bool has_importance) {
  std::string text = clip == Clip::mse ? "clip mse" : "";
  if (has_importance) text += text.empty() ? "importance" : ", importance";
  return text;
}

}  // namespace tensorcast::quantized
