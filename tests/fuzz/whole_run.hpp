// SPDX-License-Identifier: Apache-2.0
// Runs arbitrary bytes as a model, with external data, on inputs of the declared types and shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fuzz_folder.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::fuzzing {

inline constexpr std::size_t max_elements = std::size_t{1} << 16;

// Makes an input of different bytes; an undefined tensor if it would be too large.
inline NamedTensor make_input(const ValueInfo& info, std::uint8_t seed) {
  std::vector<std::int64_t> shape;
  if (info.shape) shape = *info.shape;
  for (std::int64_t& length : shape) length = length < 0 ? 2 : length;
  const DType dtype = info.dtype == DType::undefined ? DType::float32 : info.dtype;
  const Result<std::size_t> count = element_count(shape);
  if (!count || *count > max_elements) return {.name = info.name, .tensor = {}};
  if (dtype == DType::string) {
    StringBuffer strings;
    strings.offsets.push_back(0);
    for (std::size_t i = 0; i < *count; ++i) {
      strings.data.push_back(static_cast<char>('0' + i % 10));
      strings.offsets.push_back(static_cast<std::int64_t>(i + 1));
    }
    return {.name = info.name, .tensor = Tensor::own(shape, std::move(strings)).value()};
  }
  std::vector<std::byte> bytes(storage_bytes(dtype, *count));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + seed);
  return {.name = info.name, .tensor = Tensor::own(dtype, shape, std::move(bytes)).value()};
}

// The format follows from the first byte. Data outside the model is `w.bin`, and model.bin for OpenVINO. Aborts where
// something is wrong.
inline void load_and_run(const Folder& folder, const std::uint8_t* data, std::size_t size) {
  const char first = size == 0 ? '\0' : static_cast<char>(data[0]);
  const bool is_yaml = first >= 'a' && first <= 'z';
  LoadModelOptions options{.format = first == '<' ? "openvino_ir" : first == '{' || is_yaml ? "mdf" : "onnx"};
  options.input_type = [](std::string_view) { return DType::float32; };
  Result<Model> model = load_model(folder.put("model", data, size), options);
  if (!model) {
    if (model.error().code == ErrorCode::internal && model.error().message != "out of memory") std::abort();
    return;
  }
  const Result<Program> program = Program::compile(std::move(model->graph));
  if (!program) return;
  std::vector<NamedTensor> inputs;
  for (const ValueInfo& info : program->inputs()) {
    inputs.push_back(make_input(info, size == 0 ? 0 : data[size - 1]));
    if (inputs.back().tensor.dtype() == DType::undefined) return;
  }
  const auto outputs = program->run(inputs, {.threads = 1});
  if (!outputs) {
    if (outputs.error().code == ErrorCode::internal) std::abort();
    return;
  }
  if (outputs->size() != program->outputs().size()) std::abort();
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const DType declared = program->outputs()[i].dtype;
    if (declared != DType::undefined && declared != (*outputs)[i].tensor.dtype()) std::abort();
  }
}

}  // namespace tensorcast::fuzzing
