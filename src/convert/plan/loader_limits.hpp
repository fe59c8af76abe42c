// SPDX-License-Identifier: Apache-2.0
// What loaders of a layout take, applied to what a request asks for each weight.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/select/tensor_selection.hpp"
#include "quantized/layout/loaders.hpp"
#include "quantized/rewrite/respelling.hpp"

namespace tensorcast::file_conversion {

// Loaders of a quantized model would take its numbers for codes.
[[nodiscard]] bool is_float8_weight(std::string_view name, DType dtype) noexcept;

class LoaderLimits {
 public:
  // `layout`: that of all weights that are quantized. All outlive it. With `force_layout`, only warnings remain.
  LoaderLimits(const ConvertRequest& request, std::string_view layout, const quantized::ModelArchitecture& architecture)
      : request_(request), layout_(layout), architecture_(architecture) {}

  // Changes the decision for a weight that loaders would not take: it is not quantized. `weight` says what the tensor
  // does not. `from_layer`: it is quantized already, and becomes bfloat16. Errors: unsupported: a rule names the
  // weight, or `strict_schemes`.
  [[nodiscard]] Result<void> apply(const formats::TensorInfo& tensor, quantized::LoadedWeight weight, bool from_layer,
                                   Decision& decision);
  // Why loaders would not take a weight of the scheme that it names; "": they do, or `force_layout` writes it.
  [[nodiscard]] std::string why_not(const quantized::LoadedWeight& weight) const;
  // Counts what a weight goes beyond all the same.
  void warn(const quantized::LoadedWeight& weight);
  // Of layers that get the layout, whose codes stay: none can be left. Adds warnings to the plan. Errors: unsupported:
  // loaders would not take one, or numbers beside them.
  [[nodiscard]] Result<void> check(quantized::Respelling& plan, const quantized::FoundLayers& layers,
                                   std::span<const formats::TensorInfo> tensors,
                                   const std::function<bool(const std::string&)>& writes);
  // One sentence for each limit that weights go beyond all the same.
  [[nodiscard]] std::vector<std::string> warnings() const;
  // Why no weight is left to quantize. A message that is empty: no weight was left alone.
  [[nodiscard]] const Error& first_left() const noexcept { return first_left_; }

 private:
  // Null: none, or `force_layout`.
  [[nodiscard]] const quantized::LoaderLimit* forbids(const quantized::LoadedWeight& weight) const;
  [[nodiscard]] Result<void> check(const quantized::LoadedWeight& weight);
  [[nodiscard]] Error refusal(std::string_view weight, const quantized::LoaderLimit& limit, const char* hint) const;

  struct Beyond {
    std::string first;  // weight
    std::size_t others = 0;
  };

  const ConvertRequest& request_;
  std::string_view layout_;
  const quantized::ModelArchitecture& architecture_;
  std::map<const quantized::LoaderLimit*, Beyond> warned_;
  Error first_left_;
};

}  // namespace tensorcast::file_conversion
