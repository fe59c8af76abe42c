// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/mix_rules.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <map>
#include <string>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/choose/gguf_mix.hpp"

namespace tensorcast::file_conversion {

Result<ConvertRequest> with_mix(const ConvertRequest& request, const formats::Reader& reader,
                                const formats::Format& input, const formats::Format& output) {
  ConvertRequest mixed = request;
  if (request.mix.empty()) return mixed;
  const quantized::GgufMix* mix = TRY(quantized::find_mix(request.mix));
  if (request.to != DType::undefined || !request.scheme.empty() || request.budget != 0.0 || !request.respell.empty()) {
    return invalid("`mix` chooses the type of each tensor, so there is none to convert to",
                   "rules name types for some of the tensors");
  }
  constexpr std::string_view gguf = "gguf";
  if (input.name != gguf || output.name != gguf) {
    return unsupported(fmt::format("`mix` is from GGUF to GGUF, not from {} to {}", input.name, output.name),
                       "make a GGUF of the model with llama.cpp first, and name a .gguf file as the output");
  }
  const quantized::MixModel model = TRY(quantized::mix_model_of(reader.metadata()));
  const auto& tensors = reader.tensors();
  const std::vector<std::string_view> types =
      quantized::types_in_mix(*mix, model, tensors, !request.importance.empty());
  std::map<std::string_view, std::string> patterns;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].empty()) continue;
    std::string& pattern = patterns[types[i]];
    pattern += (pattern.empty() ? "^(?:" : "|") + RE2::QuoteMeta(tensors[i].name);
  }
  for (auto& [type, pattern] : patterns) {
    ConvertRule rule{.pattern = std::move(pattern) + ")$"};
    if (type == name(DType::float16)) {
      rule.to = DType::float16;
    } else {
      rule.scheme = type;
    }
    mixed.rules.push_back(std::move(rule));
  }
  return mixed;
}

}  // namespace tensorcast::file_conversion
