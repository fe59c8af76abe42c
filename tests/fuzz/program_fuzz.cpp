// Runs arbitrary bytes as an ONNX model, with external data, on inputs of the declared types and shapes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fuzz_folder.hpp"
#include "tensorcast/model.hpp"

using namespace tensorcast;

namespace {

constexpr std::size_t max_elements = std::size_t{1} << 16;

// Makes an input of different bytes; an undefined tensor if it would be too large.
NamedTensor make_input(const ValueInfo& info, std::uint8_t seed) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzzing::Folder folder;
  Result<Model> model = load_model(folder.put("model.onnx", data, size), {.format = "onnx"});
  if (!model) return 0;
  const Result<Program> program = Program::compile(std::move(model->graph));
  if (!program) return 0;
  std::vector<NamedTensor> inputs;
  for (const ValueInfo& info : program->inputs()) {
    inputs.push_back(make_input(info, size == 0 ? 0 : data[size - 1]));
    if (inputs.back().tensor.dtype() == DType::undefined) return 0;
  }
  const auto outputs = program->run(inputs, {.threads = 1});
  if (!outputs) {
    if (outputs.error().code == ErrorCode::internal) std::abort();
    return 0;
  }
  if (outputs->size() != program->outputs().size()) std::abort();
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const DType declared = program->outputs()[i].dtype;
    if (declared != DType::undefined && declared != (*outputs)[i].tensor.dtype()) std::abort();
  }
  return 0;
}
