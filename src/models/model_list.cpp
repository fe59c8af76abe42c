#include "models/model_format.hpp"
// SPDX-License-Identifier: Apache-2.0
namespace tensorcast::models {

std::span<const ModelFormat> model_formats() {
  static const ModelFormat formats[] = {onnx_format, openvino_ir_format, mdf_format};
  return formats;
}

}  // namespace tensorcast::models
