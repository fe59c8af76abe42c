// SPDX-License-Identifier: Apache-2.0
// The mixtures of llama-quantize, such as Q4_K_M: which type each tensor of a model gets, by its name and shape and by
// what the model's metadata say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

struct GgufMix;

// Names are the same in any case, and with `-` as with `_`. Errors: invalid_argument, which lists the names.
[[nodiscard]] Result<const GgufMix*> find_mix(std::string_view name);
// ggml's number for files of the mixture: general.file_type.
[[nodiscard]] std::uint32_t file_type_of(const GgufMix& mix) noexcept;

// What the mixtures ask of a model.
struct MixModel {
  std::string architecture = {};
  std::int64_t layers = 0;
  std::int64_t heads = 0, key_value_heads = 0;  // of the first layer
  std::int64_t experts = 0;
};
// Errors: unsupported: the metadata lack what mixtures depend on, or the architecture has rules of its own.
[[nodiscard]] Result<MixModel> mix_model_of(const formats::Metadata& metadata);

// The scheme of each tensor, or "float16" where no scheme fits its columns; empty: it stays as it is.
// `has_importance`: whether there is an importance matrix.
[[nodiscard]] std::vector<std::string_view> types_in_mix(const GgufMix& mix, const MixModel& model,
                                                         std::span<const formats::TensorInfo> tensors,
                                                         bool has_importance);

}  // namespace tensorcast::quantized
