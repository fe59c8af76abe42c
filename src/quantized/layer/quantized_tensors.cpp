// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/quantized_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tensorcast/dtype.hpp"

namespace tensorcast::file_conversion {
namespace {

using formats::TensorInfo;

struct DecoderName {
  std::string_view word;  // the end of a decoder's name, after '.', '_' or nothing
  bool certain = false;   // only quantizers use it
};

// The first that matches decides, so longer words are first.
constexpr auto decoder_names = std::to_array<DecoderName>({
    {"weight_scale_inv", true},        // DeepSeek, Qwen
    {"weight_scale_2", true},          // ModelOpt
    {"weight_global_scale", true},     // compressed-tensors
    {"input_global_scale", true},      // compressed-tensors
    {"weight_zero_point", true},       // compressed-tensors, Quark
    {"weight_quantizer._amax", true},  // ModelOpt, before export
    {"input_quantizer._amax", true},   // ModelOpt
    {"nested_absmax", true},           // bitsandbytes
    {"nested_quant_map", true},        // bitsandbytes
    {"absmax", true},                  // bitsandbytes
    {"quant_map", true},               // bitsandbytes
    {"SCB", true},                     // bitsandbytes, int8
    {"weight_format"},                 // bitsandbytes, int8
    {"qzeros", true},                  // GPTQ, AWQ
    {"g_idx", true},                   // GPTQ
    {"pre_quant_scale", true},         // ModelOpt, AWQ
    {"comfy_quant", true},             // ComfyUI
    {"scaled_fp8", true},              // ComfyUI
    {"scale_weight"},                  // ComfyUI
    {"scale_input"},                   // ComfyUI
    {"scales_and_zeros", true},        // torchao
    {"weight_scaling_factor"},         //
    {"scaling_factor"},                //
    {"global_scale"},                  //
    {"scale_inv"},                     //
    {"scale_2"},                       //
    {"descale"},                       //
    {"scales"},                        // GPTQ, AWQ, MLX, gpt-oss
    {"scale"},                         // compressed-tensors, DeepSeek-V4, GGUF
    {"amax"},                          //
    {"zero_points"},                   //
    {"zero_point"},                    //
    {"zeros"},                         //
    {"zero"},                          // HQQ
    {"biases"},                        // MLX
    {"shape"},                         // compressed-tensors: weight_shape
    {"codebooks"},                     // AQLM
    {"codebook"},                      //
});

// What follows the name of a module, or of a weight, in the name of its codes.
struct CodesName {
  std::string_view leaf;
  bool certain = false;
};
constexpr auto codes_names = std::to_array<CodesName>({
    {"", false},
    {".weight", false},
    {".qweight", true},        // GPTQ, AWQ
    {".weight_packed", true},  // compressed-tensors
    {"_packed", false},        // the same, of "x.weight"
    {"_blocks", false},        // gpt-oss
    {".blocks", false},        // gpt-oss, original
    {"._data", false},         // quanto
    {"_qdata", false},         // torchao
    {".W_q", false},           // HQQ
    {".codes", false},         // AQLM
});

// Stands between a module and the word of a decoder of activations, such as "x.input_scale".
constexpr auto subjects = std::to_array<std::string_view>({"weight", "input", "output", "act", "activation"});

// Scales of a quantized cache of keys and values stand beside attention, whose weights may be plain.
constexpr auto cache_scales = std::to_array<std::string_view>({"k_scale", "v_scale"});

constexpr std::string_view state_mark = ".quant_state.";  // bitsandbytes: x.weight.quant_state.bitsandbytes__nf4

bool is_separator(char c) { return c == '.' || c == '_' || c == '/' || c == ':'; }

// Returns what stands before `word` and its separator at the end of `name`; nullopt if `name` does not end so.
std::optional<std::string> before(const std::string& name, std::string_view word) {
  if (!name.ends_with(word)) return std::nullopt;
  const std::size_t rest = name.size() - word.size();
  if (rest == 0) return std::string();
  if (!is_separator(name[rest - 1])) return std::nullopt;
  return name.substr(0, rest - 1);
}

bool is_narrow(const TensorInfo& tensor) {
  constexpr int widest_code_bits = 8;
  if (!is_castable(tensor.dtype) || tensor.dtype == DType::float8_e8m0fnu) return false;
  const Family kind = family(tensor.dtype);
  return (kind == Family::floating || kind == Family::integer) && bit_width(tensor.dtype) <= widest_code_bits;
}

// Codes may be packed into wider integers, or be of a block format.
bool may_be_codes(const TensorInfo& tensor) {
  if (tensor.dtype == DType::undefined) return tensor.foreign_dtype != "C64" && !tensor.foreign_dtype.empty();
  return is_narrow(tensor) || family(tensor.dtype) == Family::integer;
}

std::string module_above(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

class Search {
 public:
  Search(std::span<const TensorInfo> tensors, bool claimed)
      : tensors_(tensors), claimed_(claimed), parts_(tensors.size()) {
    places_.reserve(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) places_.emplace(tensors[i].name, i);
  }

  std::vector<QuantizedPart> run() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) find_decoder(i);
    for (const auto& [index, module] : left_over_) {
      if (certain_modules_.contains(module)) mark(index, QuantizedRole::decoder, "", module);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) find_codes(i);
    if (claimed_) {
      add_siblings();
    } else {
      guess();
    }
    return std::move(parts_);
  }

 private:
  void find_decoder(std::size_t index) {
    const std::string& name = tensors_[index].name;
    if (const std::size_t mark = name.find(state_mark); mark != std::string::npos) {
      return add_decoder(index, name.substr(0, mark), true);
    }
    for (const std::string_view word : cache_scales) {
      if (const auto stem = before(name, word); stem && scales_cache(index, *stem)) {
        mark(index, QuantizedRole::decoder, "", module_above(name));
        return;
      }
    }
    for (const DecoderName& decoder : decoder_names) {
      if (const auto stem = before(name, decoder.word)) return add_decoder(index, *stem, decoder.certain);
    }
  }

  // Keys and values both have a scale, each one number for a tensor or a head.
  [[nodiscard]] bool scales_cache(std::size_t index, const std::string& stem) const {
    if (claimed_) return true;
    if (family(tensors_[index].dtype) != Family::floating || tensors_[index].count != 1) return false;
    std::string base = stem;
    for (const std::string_view module : {".k_proj", ".v_proj"}) {
      if (base.ends_with(module)) base.resize(base.size() - module.size());
    }
    const auto both = [&](const char* key, const char* value) {
      return places_.contains(base + key) && places_.contains(base + value);
    };
    return both(".k_scale", ".v_scale") || both(".k_proj.k_scale", ".v_proj.v_scale");
  }

  void add_decoder(std::size_t index, const std::string& stem, bool certain) {
    std::string above = stem;  // without "input" and the like
    bool has_weight = false;
    for (const std::string_view subject : subjects) {
      if (const auto module = before(stem, subject)) above = *module;
    }
    for (const std::string& base : {stem, above}) {
      for (const CodesName& codes : codes_names) {
        const auto found = places_.find(base.empty() && codes.leaf.starts_with('.') ? std::string(codes.leaf.substr(1))
                                                                                    : base + std::string(codes.leaf));
        if (found == places_.end() || found->second == index) continue;
        has_weight = true;
        const TensorInfo& weight = tensors_[found->second];
        if (!may_be_codes(weight) && !certain && !claimed_) continue;
        const std::string module = base == stem ? above : base;  // of "x.weight" and "x.weight_packed": "x"
        mark(index, QuantizedRole::decoder, weight.name, module);
        mark(found->second, QuantizedRole::codes, tensors_[index].name, module);
        return;
      }
    }
    // Without its codes, "x.weight_scale" is no less a scale, nor is GPTQ's "x.scales" beside "x.qzeros".
    const bool is_scale = tensors_[index].dtype == DType::float8_e8m0fnu;  // nothing else has this type
    if (certain || is_scale || (!has_weight && before(stem, "weight"))) {
      mark(index, QuantizedRole::decoder, "", above);
      certain_modules_.insert(above);
    } else if (!has_weight) {
      left_over_.emplace_back(index, above);
    }
  }

  void find_codes(std::size_t index) {
    const TensorInfo& tensor = tensors_[index];
    if (parts_[index].role != QuantizedRole::none) return;
    for (const CodesName& codes : codes_names) {
      if (!codes.certain || !tensor.name.ends_with(codes.leaf) || !may_be_codes(tensor)) continue;
      return mark(index, QuantizedRole::codes, "", tensor.name.substr(0, tensor.name.size() - codes.leaf.size()));
    }
    if (claimed_ && is_narrow(tensor)) mark(index, QuantizedRole::codes, "", module_above(tensor.name));
  }

  // Spellings that the tables lack: what stands in a module with codes belongs to them.
  void add_siblings() {
    std::unordered_map<std::string, std::string> codes_of;  // by module
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string module = module_above(tensors_[i].name);
      if (parts_[i].role == QuantizedRole::codes && !module.empty()) codes_of.emplace(module, tensors_[i].name);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i].name;
      if (parts_[i].role != QuantizedRole::none || name.find("bias") != std::string::npos) continue;
      const std::string module = module_above(name);
      const auto found = codes_of.find(module);
      if (found == codes_of.end()) continue;
      // "experts.gate_up_proj_blocks" and "experts.router" are of one module, and not of one weight.
      if (found->second.ends_with("_blocks")) continue;
      mark(i, QuantizedRole::decoder, found->second, module);
    }
  }

  // Codes that nothing describes, beside a tensor whose name no table has: a float tensor of few numbers in the module
  // of a weight of float8 or packed integers can hardly be anything but its scales.
  void guess() {
    std::unordered_map<std::string, std::size_t> codes_of;  // by module
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (parts_[i].role == QuantizedRole::none && looks_like_codes(tensors_[i])) {
        codes_of.emplace(module_above(tensors_[i].name), i);
      }
    }
    codes_of.erase("");  // the root, whose tensors have nothing to do with each other
    if (codes_of.empty()) return;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i].name;
      if (parts_[i].role != QuantizedRole::none || name.find("bias") != std::string::npos) continue;
      const std::size_t dot = name.find('.');
      auto found = codes_of.find(module_above(name));
      // "a.weight._scale" of "a.weight", and "weight_scales.a" of the module "a".
      const auto own = places_.find(module_above(name));
      if (found == codes_of.end() && own != places_.end() && looks_like_codes(tensors_[own->second])) {
        found = codes_of.find(module_above(tensors_[own->second].name));
      }
      if (found == codes_of.end() && dot != std::string::npos) found = codes_of.find(name.substr(dot + 1));
      if (found == codes_of.end() || !looks_like_scales(tensors_[i], tensors_[found->second])) continue;
      const std::string& codes = tensors_[found->second].name;
      mark(i, QuantizedRole::decoder, codes, found->first);
      mark(found->second, QuantizedRole::codes, name, found->first);
      parts_[i].guessed = parts_[found->second].guessed = true;
    }
  }

  static bool looks_like_codes(const TensorInfo& tensor) {
    constexpr std::size_t matrix = 2;
    if (tensor.shape.size() < matrix || !is_castable(tensor.dtype) || tensor.dtype == DType::boolean) return false;
    if (family(tensor.dtype) == Family::floating) return is_narrow(tensor);
    constexpr auto words = std::to_array<std::string_view>({"weight", "_data", "qdata", "packed", "codes", "trellis"});
    return family(tensor.dtype) == Family::integer && bit_width(tensor.dtype) <= 32 &&
           std::ranges::any_of(words, [&](auto word) { return tensor.name.find(word) != std::string::npos; });
  }

  // One number, or one for each row, or for blocks of at least 8 codes; PyTorch's _extra_state may hold scales.
  static bool looks_like_scales(const TensorInfo& tensor, const TensorInfo& codes) {
    constexpr std::uint64_t least_block = 8;
    if (tensor.name.ends_with("._extra_state")) return tensor.count > 0;
    const bool is_float = is_castable(tensor.dtype) && family(tensor.dtype) == Family::floating;
    if (!is_float || (bit_width(tensor.dtype) < 16 && tensor.dtype != DType::float8_e8m0fnu)) return false;
    const bool each_row = std::cmp_equal(tensor.count, codes.shape[0]) || std::cmp_equal(tensor.count, codes.shape[1]);
    return tensor.count == 1 || each_row || (tensor.count > 0 && tensor.count <= codes.bytes / least_block);
  }

  void mark(std::size_t index, QuantizedRole role, const std::string& partner, const std::string& module) {
    QuantizedPart& part = parts_[index];
    if (part.role == QuantizedRole::none) part = {.role = role, .partner = partner, .module = module, .guessed = false};
  }

  std::span<const TensorInfo> tensors_;
  bool claimed_;
  std::vector<QuantizedPart> parts_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::set<std::string> certain_modules_;                       // with a decoder whose codes are not there
  std::vector<std::pair<std::size_t, std::string>> left_over_;  // tensors that have a decoder's name, and their modules
};

// Matches `text`; unless they are kept, digits match any number, as layers are numbered.
std::string escaped(std::string_view text, bool keeps_digits = false) {
  std::string pattern;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (std::isdigit(c) != 0 && !keeps_digits) {
      while (i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0) ++i;
      pattern += "\\d+";
    } else if (std::isalnum(c) != 0 || c == '_') {
      pattern += static_cast<char>(c);
    } else {
      pattern += c == '.' ? "\\." : ".";  // no quotes of a shell
    }
  }
  return pattern;
}

}  // namespace

bool is_weight_of_integers(const TensorInfo& tensor) {
  if (tensor.dtype == DType::undefined || family(tensor.dtype) != Family::integer || tensor.shape.size() < 2) {
    return false;
  }
  return std::ranges::any_of(
      codes_names, [&](const CodesName& codes) { return codes.leaf.size() > 1 && tensor.name.ends_with(codes.leaf); });
}

std::vector<QuantizedPart> find_quantized(std::span<const TensorInfo> tensors, const std::string& claim) {
  return Search(tensors, !claim.empty()).run();
}

std::string pattern_of_layer(const std::string& name) {
  std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0) dot = name.rfind('.', dot - 1);
  return escaped(std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1), true) + "$";
}

std::string pattern_of_quantized(std::span<const TensorInfo> tensors, std::span<const QuantizedPart> parts) {
  constexpr std::size_t longest = 600;  // patterns of more than 1000 bytes are refused
  std::set<std::string> modules;
  std::set<std::string> leaves;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].role == QuantizedRole::none) continue;
    const std::string& name = tensors[i].name;
    const bool inside = name.starts_with(parts[i].module);
    const std::string module = inside ? parts[i].module : module_above(name);
    const std::size_t last = module.find_last_of("./");
    modules.insert(escaped(std::string_view(module).substr(last == std::string::npos ? 0 : last + 1)));
    leaves.insert(escaped(std::string_view(name).substr(module.size())));
  }
  const std::string ends = fmt::format("({})$", fmt::join(leaves, "|"));
  std::string pattern = fmt::format("(^|[./])({}){}", fmt::join(modules, "|"), ends);
  if (pattern.size() <= longest) return pattern;
  return ends.size() <= longest ? ends : ".";
}

}  // namespace tensorcast::file_conversion
