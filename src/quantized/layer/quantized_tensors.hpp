// SPDX-License-Identifier: Apache-2.0
// Finds the quantized tensors of a model: codes, and the tensors that decode them. The tables of names that quantizers
// use are in quantized_tensors.cpp, and nowhere else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"

namespace tensorcast::file_conversion {

enum class QuantizedRole : std::uint8_t {
  none,
  codes,    // numbers that mean nothing without their scales
  decoder,  // scales, zero points, tables, shapes and whatever else turns codes into numbers
};

struct QuantizedPart {
  QuantizedRole role = QuantizedRole::none;
  std::string partner;   // codes: the name of a tensor that decodes them; else the codes; "": not among the tensors
  std::string module;    // the part of the name that codes and decoders share, such as "layers.0.up_proj"
  bool guessed = false;  // no name says so, and nothing describes it
};

// Reports whether a tensor has the name and the shape of a weight and holds integers, which only codes do.
[[nodiscard]] bool is_weight_of_integers(const formats::TensorInfo& tensor);

// Tells the role of each tensor of a model. A name alone, such as "logit_scale" or "norm.scale", is no evidence: the
// tensor that it would scale must be there and hold codes, or the name must be one that only quantizers use.
// `claim`: what a file says about the model's quantization (quantization_claim.hpp); all codes are then quantized,
// scales may belong to tensors of any type, and all tensors of a module with codes but its bias decode them.
// One part for each tensor, in order.
[[nodiscard]] std::vector<QuantizedPart> find_quantized(std::span<const formats::TensorInfo> tensors,
                                                        const std::string& claim);

// Returns a pattern that matches a layer and those of its kind, "up_proj\\.weight$".
[[nodiscard]] std::string pattern_of_layer(const std::string& name);

// Returns a pattern for ConvertRequest::exclude that matches every quantized tensor, and may match others.
[[nodiscard]] std::string pattern_of_quantized(std::span<const formats::TensorInfo> tensors,
                                               std::span<const QuantizedPart> parts);

}  // namespace tensorcast::file_conversion
