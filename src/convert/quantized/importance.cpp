#include "convert/quantized/importance.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::string_view weight_word = ".weight";
constexpr std::string_view sums_word = ".in_sum2";
constexpr std::string_view counts_word = ".counts";

// Modules of a decoder layer, as Hugging Face's models and llama.cpp name them.
constexpr std::pair<std::string_view, std::string_view> module_names[] = {
    {"self_attn.q_proj", "attn_q"},     {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"}, {"self_attn.o_proj", "attn_output"}, {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},          {"mlp.down_proj", "ffn_down"},
};

// "model.layers.7.mlp.up_proj" -> "blk.7.ffn_up"; "" if llama.cpp's name is not known.
std::string name_in_llama(std::string_view module) {
  if (module == "lm_head") return "output";
  const std::size_t place = module.rfind("layers.");
  if (place == std::string_view::npos) return {};
  module.remove_prefix(place + std::string_view("layers.").size());
  const std::size_t dot = module.find('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view number = module.substr(0, dot);
  const bool is_number =
      std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  for (const auto& [name, other] : module_names) {
    if (is_number && module.substr(dot + 1) == name) return fmt::format("blk.{}.{}", number, other);
  }
  return {};
}

// The names that an entry for a weight can have, likely ones first.
std::array<std::string, 4> names_of(const std::string& weight) {
  std::string module = weight;
  if (module.ends_with(weight_word)) module.resize(module.size() - weight_word.size());
  const std::string there = name_in_llama(module);
  return {weight, module + std::string(weight_word), module, there.empty() ? there : there + std::string(weight_word)};
}

}  // namespace

Result<ImportanceFile> ImportanceFile::open(const std::string& path) {
  Result<file_conversion::OpenedInput> input = file_conversion::open_input(path, {}, {});
  if (!input) return std::move(input).error();
  ImportanceFile made;
  made.input_ = std::move(*input);
  const formats::Format& format = *made.input_.format;
  const auto& tensors = made.input_.reader->tensors();
  made.is_matrix_ = format.name == "gguf";
  const bool has_sums = std::any_of(tensors.begin(), tensors.end(),
                                    [](const formats::TensorInfo& each) { return each.name.ends_with(sums_word); });
  if (made.is_matrix_ ? has_sums : format.named_tensors) return made;
  return Error{.code = ErrorCode::unsupported,
               .message = "the file has no importance of weights",
               .hint =
                   "`importance` is an importance matrix of llama.cpp in GGUF, or safetensors of a number for each "
                   "column of each weight",
               .file = path};
}

const formats::TensorInfo* ImportanceFile::tensor(const std::string& name) const {
  const auto& tensors = input_.reader->tensors();
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const formats::TensorInfo& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string ImportanceFile::find(const std::string& weight) const {
  for (const std::string& name : names_of(weight)) {
    if (!name.empty() && tensor(is_matrix_ ? name + std::string(sums_word) : name) != nullptr) return name;
  }
  return {};
}

Result<std::vector<float>> ImportanceFile::numbers(const formats::TensorInfo& info) const {
  const auto index = static_cast<std::size_t>(&info - input_.reader->tensors().data());
  if (info.problem) return *info.problem;
  std::vector<std::byte> bytes(info.bytes);
  if (Result<void> got = input_.reader->read(index, 0, bytes); !got) return std::move(got).error();
  std::vector<float> numbers(info.count);
  const std::int64_t shape[] = {static_cast<std::int64_t>(info.count)};
  const MutableTensorView out{DType::float32, shape, std::as_writable_bytes(std::span(numbers))};
  if (Result<void> done = cast({info.dtype, shape, bytes}, out); !done) return std::move(done).error();
  return numbers;
}

Result<std::vector<float>> ImportanceFile::read(const std::string& name) const {
  const auto wrong = [&](std::string message) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = std::move(message),
                 .tensor = name,
                 .file = input_.file->path()};
  };
  const formats::TensorInfo* const sums = tensor(is_matrix_ ? name + std::string(sums_word) : name);
  if (sums == nullptr) return wrong("it is not in the file of importance");
  Result<std::vector<float>> made = numbers(*sums);
  if (!made || !is_matrix_) return made;
  const formats::TensorInfo* const counted = tensor(name + std::string(counts_word));
  if (counted == nullptr) return wrong("the importance matrix lacks its counts");
  const Result<std::vector<float>> counts = numbers(*counted);
  if (!counts) return counts.error();
  if (counts->empty() || made->size() % counts->size() != 0) return wrong("its sums and counts do not fit together");
  const std::size_t columns = made->size() / counts->size();
  for (std::size_t i = 0; i < made->size(); ++i) {
    const float count = (*counts)[i / columns];
    (*made)[i] = count > 0.0f ? (*made)[i] / count : 1.0f;
  }
  return made;
}

Result<std::vector<float>> read_importance(const ImportanceEntry& entry) {
  if (entry.file.empty()) return std::vector<float>();
  const Result<ImportanceFile> file = ImportanceFile::open(entry.file);
  if (!file) return file.error();
  return file->read(entry.name);
}

}  // namespace tensorcast::quantized
