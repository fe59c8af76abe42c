// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/view/shown_numbers.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "dtype/try.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::models::onnx {
namespace {

using formats::TensorInfo;
using formats::onnx::TensorProtoReader;

constexpr std::size_t loaded_elements = std::size_t{1} << 17;  // at a time
constexpr int max_decoded_scales = 2;                          // scales of scales, as nvfp4 has them

bool is_dequantizing(const Node& node) noexcept {
  return node.op_type == "DequantizeLinear" && (node.domain.empty() || node.domain == fused_domain) &&
         node.inputs.size() > 1 && node.inputs[0] != no_value && !node.outputs.empty();
}

// Reports whether an operator takes codes and decodes them itself, as MatMulInteger, QLinearConv and MatMulNBits do.
bool takes_codes(const Node& node) noexcept {
  const std::string_view op = node.op_type;
  const auto has = [&](std::string_view word) { return op.find(word) != std::string_view::npos; };
  return has("Integer") || has("NBits") || has("QLinear") || has("Quantize") || has("QGemm") || has("QAttention");
}

// Nothing: an attribute is not known, or that of a function's caller.
std::optional<DequantizeLinearOp> operation_of(const Node& node) {
  DequantizeLinearOp operation;
  for (const Attribute& attribute : node.attributes) {
    if (!attribute.reference.empty()) return std::nullopt;
    if (attribute.name == "axis") {
      operation.axis = attribute.i;
    } else if (attribute.name == "block_size") {
      operation.block_size = attribute.i;
    } else if (attribute.name == "output_dtype") {
      operation.output_dtype = static_cast<DType>(attribute.i);
    } else {
      return std::nullopt;
    }
  }
  return operation;
}

// Reports whether two nodes decode the same codes alike; attributes may be spelled in another way, which does not
// count.
bool decode_alike(const Node& a, const Node& b) {
  const std::optional<DequantizeLinearOp> x = operation_of(a), y = operation_of(b);
  const auto third = [](const Node& node) { return node.inputs.size() > 2 ? node.inputs[2] : no_value; };
  return x && y && a.inputs[1] == b.inputs[1] && third(a) == third(b) && x->axis == y->axis &&
         x->block_size == y->block_size && x->output_dtype == y->output_dtype;
}

Result<void> to_doubles(DType dtype, std::span<const std::byte> raw, std::vector<double>& numbers) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(numbers.size())};
  return cast(TensorView{dtype, shape, raw},
              MutableTensorView{DType::float64, shape, std::as_writable_bytes(std::span(numbers))});
}

}  // namespace

std::optional<CodeDecoder> CodeDecoder::make(const TensorInfo& codes, const DequantizeLinearOp& node,
                                             LinearNumbers scales, std::optional<LinearNumbers> zeros) {
  if (zeros && (zeros->shape != scales.shape || zeros->dtype != codes.dtype)) return std::nullopt;
  CodeDecoder decoder;
  decoder.codes_ = codes.dtype;
  decoder.is_single_ = scales.shape.size() <= 1 && scales.numbers.size() == 1;
  if (!decoder.is_single_) {
    const auto rank = static_cast<std::int64_t>(codes.shape.size());
    const std::int64_t from_first = node.axis < 0 ? node.axis + rank : node.axis;
    if (from_first < 0 || from_first >= rank || node.block_size < 0) return std::nullopt;
    const auto axis = static_cast<std::size_t>(from_first);
    const std::int64_t length = codes.shape[axis];
    std::vector<std::int64_t> wanted = {length};
    if (node.block_size > 0) {
      wanted = codes.shape;
      wanted[axis] = length / node.block_size + (length % node.block_size == 0 ? 0 : 1);
      decoder.block_ = static_cast<std::uint64_t>(node.block_size);
      decoder.block_count_ = static_cast<std::uint64_t>(wanted[axis]);
    }
    if (scales.shape != wanted) return std::nullopt;
    decoder.length_ = static_cast<std::uint64_t>(length);
    for (std::size_t i = axis + 1; i < codes.shape.size(); ++i) {
      decoder.inner_ *= static_cast<std::uint64_t>(codes.shape[i]);
    }
  }
  ::tensorcast::Graph graph;
  graph.inputs = {{.name = "codes", .dtype = codes.dtype}, {.name = "scale", .dtype = scales.dtype}};
  if (zeros) graph.inputs.push_back({.name = "zero", .dtype = codes.dtype});
  std::vector<std::string> inputs = {"codes", "scale"};
  if (zeros) inputs.emplace_back("zero");
  graph.nodes.push_back({.operation = DequantizeLinearOp{.axis = 0, .output_dtype = node.output_dtype},
                         .inputs = std::move(inputs),
                         .outputs = {"numbers"}});
  graph.outputs = {{.name = "numbers"}};
  Result<Program> program = Program::compile(std::move(graph));
  if (!program) return std::nullopt;
  decoder.program_ = std::make_shared<const Program>(std::move(*program));
  decoder.scales_ = std::move(scales);
  decoder.zeros_ = std::move(zeros);
  return decoder;
}

std::size_t CodeDecoder::place_of(std::uint64_t element) const noexcept {
  if (is_single_) return 0;
  const std::uint64_t along = element / inner_ % length_;
  if (block_ == 0) return static_cast<std::size_t>(along);
  const std::uint64_t outer = element / inner_ / length_;
  return static_cast<std::size_t>((outer * block_count_ + along / block_) * inner_ + element % inner_);
}

Result<Tensor> CodeDecoder::gathered(const LinearNumbers& from, std::uint64_t first, std::size_t count) const {
  std::vector<float> numbers(is_single_ ? 1 : count);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = from.numbers[place_of(first + i)];
  Shape shape;
  if (!is_single_) shape = Shape(std::vector<std::int64_t>{static_cast<std::int64_t>(count)});
  std::vector<std::byte> bytes(storage_bytes(from.dtype, numbers.size()));
  TRY(cast({DType::float32, shape, std::as_bytes(std::span(numbers))}, {from.dtype, shape, bytes}));
  return Tensor::own(from.dtype, shape, std::move(bytes));
}

Result<void> CodeDecoder::decode(std::uint64_t first, std::size_t count, std::span<const std::byte> raw,
                                 std::vector<double>& numbers) const {
  const Shape shape(std::vector<std::int64_t>{static_cast<std::int64_t>(count)});
  std::vector<NamedTensor> inputs = {{"codes", TRY(Tensor::own(codes_, shape, {raw.begin(), raw.end()}))},
                                     {"scale", TRY(gathered(scales_, first, count))}};
  if (zeros_) inputs.push_back({"zero", TRY(gathered(*zeros_, first, count))});
  const std::vector<NamedTensor> outputs = TRY(program_->run(inputs));
  numbers.resize(count);
  return to_doubles(outputs.front().tensor.dtype(), outputs.front().tensor.bytes(), numbers);
}

Result<void> ShownNumbers::load(std::uint64_t first, std::size_t count, std::vector<double>& stored,
                                std::vector<double>& numbers) {
  const DType dtype = info().dtype;
  raw_.resize(storage_bytes(dtype, count));
  stored.resize(count);
  TRY(reader_->read(0, storage_bytes(dtype, first), raw_));
  TRY(to_doubles(dtype, raw_, stored));
  if (decoder_) return decoder_->decode(first, count, raw_, numbers);
  numbers = stored;
  return {};
}

ShownNumbersOf::ShownNumbersOf(const Model& model, const ShownTensors& tensors) : model_(model) {
  for (const ShownTensor& tensor : tensors.all()) tensors_.emplace(tensor.tensor.value, &tensor);
  each_graph(model, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) find_codes(node);
  });
}

void ShownNumbersOf::find_codes(const Node& node) {
  if (!is_dequantizing(node)) {
    if (takes_codes(node)) inner_codes_.insert(node.inputs.begin(), node.inputs.end());
    return;
  }
  decoding_.emplace(node.inputs[0], &node);
  constexpr int max_moves = 16;
  ValueId moved = node.inputs[0];
  for (int i = 0; i < max_moves; ++i) {
    const Node* const producer = model_.values[moved].producer;
    const bool moves = producer != nullptr && producer->domain.empty() && only_moves_elements(producer->op_type);
    if (!moves || producer->inputs.empty() || producer->inputs[0] == no_value) return;
    moved = producer->inputs[0];
    inner_codes_.insert(moved);
  }
}

Result<ShownNumbers> ShownNumbersOf::open(const ShownTensor& tensor, Reader reader, int depth) const {
  using Meaning = ShownNumbers::Meaning;
  const ValueId value = tensor.tensor.value;
  const auto [first, last] = decoding_.equal_range(value);
  if (first == last || tensor.tensor.sparse) {
    const bool is_inner = inner_codes_.contains(value) && family(tensor.tensor.element) == Family::integer;
    return ShownNumbers(std::move(reader), is_inner ? Meaning::unknown : Meaning::elements, std::nullopt);
  }
  const Node& node = *first->second;
  Decoder decoder;
  if (!inner_codes_.contains(value) &&
      std::all_of(first, last, [&](const auto& other) { return decode_alike(node, *other.second); })) {
    decoder = TRY(decoder_of(reader->tensors().front(), node, depth));
  }
  const Meaning meaning = decoder ? Meaning::decoded : Meaning::unknown;
  return ShownNumbers(std::move(reader), meaning, std::move(decoder));
}

Result<ShownNumbersOf::Decoder> ShownNumbersOf::decoder_of(const TensorInfo& codes, const Node& node, int depth) const {
  const std::optional<DequantizeLinearOp> operation = operation_of(node);
  if (!operation) return Decoder();
  std::optional<LinearNumbers> scales = TRY(constant(node.inputs[1], depth));
  const bool has_zeros = node.inputs.size() > 2 && node.inputs[2] != no_value;
  std::optional<LinearNumbers> zeros;
  if (has_zeros) zeros = TRY(constant(node.inputs[2], depth));
  if (!scales || has_zeros != zeros.has_value()) return Decoder();
  return CodeDecoder::make(codes, *operation, std::move(*scales), std::move(zeros));
}

// Reads a tensor, what a DequantizeLinear makes of one, or either in another type. Nothing: a node computes the value,
// or it is too deep.
Result<std::optional<LinearNumbers>> ShownNumbersOf::constant(ValueId id, int depth) const {
  const std::optional<LinearNumbers> none;
  if (id == no_value || depth > max_decoded_scales) return none;
  const Node* const node = model_.values[id].producer;
  const DType type = model_.values[id].type.element;
  const bool is_decoded = node != nullptr && is_dequantizing(*node);
  if (node != nullptr && node->domain.empty() && (node->op_type == "Cast" || node->op_type == "Identity")) {
    std::optional<LinearNumbers> cast = TRY(constant(node->inputs.empty() ? no_value : node->inputs[0], depth + 1));
    if (!cast || !is_castable(type)) return none;
    cast->dtype = type;
    return cast;
  }
  const auto found = tensors_.find(is_decoded ? node->inputs[0] : id);
  if (found == tensors_.end() || found->second->tensor.sparse) return none;
  const ShownTensor& tensor = *found->second;
  const DType element = tensor.tensor.element;
  if (!is_castable(element) || element == DType::string || bit_width(element) > 32) return none;
  ShownNumbers reader = TRY(open(tensor, TRY(TensorProtoReader::open(*tensor.file, tensor.tensor.tensor)), depth + 1));
  const TensorInfo& info = reader.info();
  LinearNumbers made{.dtype = is_decoded ? type : info.dtype, .shape = info.shape};
  if (!is_castable(made.dtype) || (is_decoded && reader.meaning() != ShownNumbers::Meaning::decoded)) return none;
  made.numbers.reserve(static_cast<std::size_t>(info.count));
  std::vector<double> stored, decoded;
  for (std::uint64_t first = 0; first < info.count; first += loaded_elements) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(loaded_elements, info.count - first));
    TRY(reader.load(first, count, stored, decoded));
    for (const double number : is_decoded ? decoded : stored) made.numbers.push_back(static_cast<float>(number));
  }
  return std::optional(std::move(made));
}

}  // namespace tensorcast::models::onnx
