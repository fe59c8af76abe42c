// SPDX-License-Identifier: Apache-2.0
// The tensors of a model as people see them: initializers, and the values of Constants, of all graphs and functions.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

struct ShownTensor {
  std::string name;  // in subgraphs and functions the scope, a slash and the name; of a Constant that of its output
  const io::InputFile* file = nullptr;  // that holds `tensor`
  // Of a Constant: its tensor, as an initializer of the node's output; `field` is the whole message.
  Initializer tensor;
};

class ShownTensors {
 public:
  // Lists the tensors in the order of the file, those of a graph before those of its nodes. `file` outlives the result.
  // Errors: parse, io.
  [[nodiscard]] static Result<ShownTensors> of(const io::InputFile& file, const Model& model,
                                               const std::vector<std::string>& scopes);

  [[nodiscard]] const std::vector<ShownTensor>& all() const noexcept { return tensors_; }

 private:
  [[nodiscard]] Result<void> add_constant(const io::InputFile& file, const Attribute& attribute, std::string name);
  // `contents`: the field of TensorProto that has the elements.
  void add_elements(std::string name, DType element, bool is_scalar, std::uint64_t count, std::string_view contents);

  std::vector<ShownTensor> tensors_;
  // TensorProtos of the numbers and texts in attributes, and each as a file. Elements of a deque stay where they are.
  std::deque<std::string> messages_;
  std::deque<io::InputFile> files_;
};

}  // namespace tensorcast::models::onnx
