#include "models/mdf/mdf.hpp"
#include "models/model_format.hpp"
#include "models/onnx/onnx_format.hpp"
#include "models/openvino_ir/openvino_ir.hpp"
// SPDX-License-Identifier: Apache-2.0
namespace tensorcast::models {

std::span<const ModelFormat> model_formats() {
  static const ModelFormat formats[] = {onnx_format, openvino_ir::format(), mdf::format()};
  return formats;
}

}  // namespace tensorcast::models
