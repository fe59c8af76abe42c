// OpenVINO IR: `NAME.xml` with the layers and `NAME.bin` beside it with the constants.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "models/model_format.hpp"

namespace tensorcast::models::openvino_ir {

[[nodiscard]] const ModelFormat& format();

}  // namespace tensorcast::models::openvino_ir
