// SPDX-License-Identifier: Apache-2.0
// What loaders of a layout take, applied to what a request asks for each weight.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convert/select/tensor_selection.hpp"
#include "quantized/layout/loaders.hpp"

namespace tensorcast::file_conversion {

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
  // One sentence for each limit that weights go beyond all the same.
  [[nodiscard]] std::vector<std::string> warnings() const;
  // Why no weight is left to quantize. A message that is empty: no weight was left alone.
  [[nodiscard]] const Error& first_left() const noexcept { return first_left_; }

 private:
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
