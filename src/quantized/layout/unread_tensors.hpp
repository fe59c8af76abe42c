// SPDX-License-Identifier: Apache-2.0
// Tensors beside the codes of a layer that nothing reads: known to be harmless, or a reason not to decode it.
#pragma once

#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {

// Gives layers a problem beside whose codes a tensor stands that no layer has and that is not known to be harmless.
void refuse_unread(const ModelTensors& tensors, FoundLayers& found);

}  // namespace tensorcast::quantized
