// SPDX-License-Identifier: Apache-2.0
// Which modules loaders join into one matrix.
#pragma once

#include <string>
#include <string_view>

namespace tensorcast::quantized {

// A name for the whole that the module of a weight is a part of, such as that of q_proj, k_proj and v_proj of one
// layer; "": it is joined with none. Weights of one whole have one name.
[[nodiscard]] std::string joined_module(std::string_view weight);

// A name for the weights that loaders want in one scheme: the whole, or all experts of a layer; "": its scheme is its
// own.
[[nodiscard]] std::string one_scheme_module(std::string_view weight);

}  // namespace tensorcast::quantized
