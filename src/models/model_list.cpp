// SPDX-License-Identifier: Apache-2.0
#include "models/model_format.hpp"

namespace tensorcast::models {

std::span<const ModelFormat> model_formats() {
  static const ModelFormat formats[] = {onnx_format, openvino_ir_format, mdf_format};
  return formats;
}

}  // namespace tensorcast::models
