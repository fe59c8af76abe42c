// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::respell(): products with matrices of 4-bit codes, as ONNX Runtime's MatMulNBits or as MatMul behind
// a DequantizeLinear of blocks. The codes, scales and zero points are the same numbers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "models/onnx/edit/opset_upgrade.hpp"
#include "models/onnx/edit/packed_products.hpp"
#include "models/onnx/edit/splice_node.hpp"
#include "models/onnx/edit/spliced_model.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/fresh_names.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/code_pairs.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using formats::onnx::Field;
using formats::onnx::TensorProtoReader;
using ::tensorcast::onnx::MatMulSpelling;
using ::tensorcast::onnx::RespellOutcome;
using ::tensorcast::onnx::RespellRequest;

constexpr std::string_view microsoft = "com.microsoft";
constexpr std::int64_t blocks_opset = 21, int4_ir_version = 10;

std::int64_t number_in(const Node& node, std::string_view name, std::int64_t otherwise) {
  const Attribute* attribute = node.attribute(name);
  return attribute == nullptr ? otherwise : attribute->i;
}

struct StoredTensor {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

// A TensorProto as a field of its graph.
WireRope initializer_of(const std::string& name, DType dtype, std::span<const std::int64_t> shape,
                        std::span<const std::byte> bytes) {
  std::string proto;
  for (const std::int64_t size : shape) proto += encode_varint_field(Field::dims, static_cast<std::uint64_t>(size));
  proto += encode_varint_field(Field::data_type, dtype) + encode_field(Field::name, name);
  proto += encode_field(Field::raw_data, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return WireRope(encode_field(graph_field::initializer, proto));
}

class Respelling {
 public:
  Respelling(const io::InputFile& file, Model& model, MatMulSpelling to)
      : file_(file), model_(model), to_(to), values_(model.value_names), nodes_(model.node_names) {}

  Result<WireRope> run() {
    outcome_.opset_before = outcome_.opset_after = model_.graph->opset("");
    count_uses();
    plan_graph(*model_.graph);
    if (!products_.empty() && to_ == MatMulSpelling::qdq) TRY(raise_opset());
    for (const auto& [node, product] : products_) replaced_.insert(node);
    find_unused();
    Splice splice(0, file_.size());
    TRY(change(*model_.graph, splice));
    TRY(change_model(splice));
    return std::move(splice).finish();
  }

  [[nodiscard]] const RespellOutcome& outcome() const noexcept { return outcome_; }

 private:
  struct Product {
    const Node* dequantize = nullptr;  // null: MatMulNBits
    ValueId codes = no_value, scales = no_value, zeros = no_value;
    ProductSize size;
  };
  // Names of what a product became: several may share a DequantizeLinear.
  struct Made {
    std::string codes, scales, zeros;
  };

  void count_uses() {
    uses_.assign(model_.values.size(), {});
    each_graph(model_, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        for (const ValueId id : node.inputs) {
          if (id != no_value) uses_[id].push_back(&node);
        }
      }
    });
  }

  void plan_graph(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      Product product;
      ValueId named = no_value;
      const std::string_view why = to_ == MatMulSpelling::matmulnbits ? plan_dequantized(graph, node, product, named)
                                                                      : plan_packed(graph, node, product, named);
      if (named != no_value && !why.empty()) {
        outcome_.left.push_back({.name = model_.values[named].name, .reason = why});
      } else if (named != no_value) {
        products_.emplace(&node, product);
      }
      for (const Graph* inner : node.bodies()) plan_graph(*inner);
    }
  }

  // Whether a value is a constant of this graph of a type and shape that is known.
  [[nodiscard]] bool is_constant(const Graph& graph, ValueId id) const {
    if (id == no_value) return false;
    const Value& value = model_.values[id];
    return value.graph == &graph && value.initializer != nullptr && !value.is_input && !value.is_output &&
           !value.initializer->sparse;
  }

  [[nodiscard]] static ValueId input_of(const Node& node, std::size_t index) {
    return index < node.inputs.size() ? node.inputs[index] : no_value;
  }

  // MatMul whose second input a DequantizeLinear makes. Sets `named` if the codes have four bits; why they stay.
  std::string_view plan_dequantized(const Graph& graph, const Node& node, Product& product, ValueId& named) {
    if (!node.domain.empty() || node.op_type != "MatMul" || input_of(node, 1) == no_value) return {};
    const Node* const dequantize = model_.values[node.inputs[1]].producer;
    if (dequantize == nullptr || !is_dequantize(*dequantize) || input_of(*dequantize, 0) == no_value) return {};
    product.dequantize = dequantize;
    product.codes = input_of(*dequantize, 0);
    product.scales = input_of(*dequantize, 1);
    product.zeros = input_of(*dequantize, 2);
    const Value& codes = model_.values[product.codes];
    if (codes.initializer == nullptr) return {};
    const DType type = codes.initializer->element;
    if (type != DType::int4 && type != DType::uint4) return {};
    named = product.codes;
    if (!is_constant(graph, product.codes) || !is_constant(graph, product.scales) ||
        (product.zeros != no_value && !is_constant(graph, product.zeros)) ||
        model_.values[node.inputs[1]].graph != &graph) {
      return "codes, scales and zero points are not constants of the product's graph";
    }
    const std::int64_t axis = number_in(*dequantize, "axis", 1), block = number_in(*dequantize, "block_size", 0);
    if (block == 0) return "MatMulNBits has blocks, and these are scales of channels";
    if (block < 16 || !std::has_single_bit(static_cast<std::uint64_t>(block))) {
      return "blocks of MatMulNBits are a power of two from 16 on";
    }
    if (axis != 0 && axis != -2) return "blocks of MatMulNBits run along the inputs, the first axis";
    const DType scales = model_.values[product.scales].initializer->element;
    if (scales != DType::float32 && scales != DType::float16) return "scales of MatMulNBits are float32 or float16";
    const auto none = static_cast<std::int64_t>(DType::undefined);
    const std::int64_t made = number_in(*dequantize, "output_dtype", none);
    if (made != none && made != static_cast<std::int64_t>(scales))
      return "the numbers have another type than the scales";
    const Result<std::unique_ptr<TensorProtoReader>> reader = TensorProtoReader::open(file_, codes.initializer->tensor);
    if (!reader) return "the codes cannot be read";
    const std::vector<std::int64_t>& shape = (*reader)->tensors()[0].shape;
    if (shape.size() != 2) return "MatMulNBits has matrices";
    product.size = {.inputs = static_cast<std::uint64_t>(shape[0]),
                    .outputs = static_cast<std::uint64_t>(shape[1]),
                    .block = static_cast<std::uint64_t>(block)};
    return {};
  }

  // MatMulNBits. Sets `named` for each; why it stays.
  std::string_view plan_packed(const Graph& graph, const Node& node, Product& product, ValueId& named) {
    if (node.domain != microsoft || node.op_type != "MatMulNBits" || input_of(node, 1) == no_value) return {};
    product.codes = named = input_of(node, 1);
    product.scales = input_of(node, 2);
    product.zeros = input_of(node, 3);
    if (!is_constant(graph, product.codes) || !is_constant(graph, product.scales) ||
        (product.zeros != no_value && !is_constant(graph, product.zeros))) {
      return "codes, scales and zero points are not constants of the product's graph";
    }
    if (input_of(node, 4) != no_value) return "its inputs are in groups of another order";
    if (input_of(node, 5) != no_value) return "it adds a bias";
    constexpr std::string_view known[] = {"K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"};
    const auto is_unknown = [&](const Attribute& attribute) { return !contains(known, attribute.name); };
    if (std::ranges::any_of(node.attributes, is_unknown)) return "it has an attribute that is not known";
    // 1 and 2: ONNX Runtime has put the codes into the order of a CUDA kernel.
    if (number_in(node, "weight_prepacked", 0) != 0) return "its codes are in the order of a kernel (weight_prepacked)";
    if (number_in(node, "bits", 4) != 4) return "its codes have another width than 4 bits";
    const auto type_of = [&](ValueId id) { return model_.values[id].initializer->element; };
    if (type_of(product.codes) != DType::uint8) return "its codes are not bytes";
    if (product.zeros != no_value && type_of(product.zeros) != DType::uint8) return "its zero points are numbers";
    if (type_of(product.scales) != DType::float32 && type_of(product.scales) != DType::float16) {
      return "its scales are neither float32 nor float16";
    }
    const std::int64_t inputs = number_in(node, "K", 0), outputs = number_in(node, "N", 0);
    const std::int64_t block = number_in(node, "block_size", 0);
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (inputs < 1 || outputs < 1 || inputs >= most || outputs >= most || block < 2 || block % 2 != 0 ||
        block >= most) {
      return "its sizes are out of range";
    }
    product.size = {.inputs = static_cast<std::uint64_t>(inputs),
                    .outputs = static_cast<std::uint64_t>(outputs),
                    .block = static_cast<std::uint64_t>(block)};
    return {};
  }

  // What nothing uses any longer: the DequantizeLinear nodes of products, and constants of these and of the products.
  void find_unused() {
    const auto is_gone = [&](const Node* node) { return replaced_.contains(node); };
    for (const auto& [node, product] : products_) {
      if (product.dequantize == nullptr) continue;
      const ValueId made = product.dequantize->outputs[0];
      if (!model_.values[made].is_output && std::ranges::all_of(uses_[made], is_gone))
        removed_.insert(product.dequantize);
    }
    const auto is_free = [&](const Node* node) {
      return removed_.contains(node) || (to_ == MatMulSpelling::qdq && is_gone(node));
    };
    for (const auto& [node, product] : products_) {
      for (const ValueId id : {product.codes, product.scales, product.zeros}) {
        if (id != no_value && std::ranges::all_of(uses_[id], is_free)) unused_.insert(id);
      }
    }
  }

  Result<StoredTensor> load(ValueId id) const {
    const auto reader = TRY(TensorProtoReader::open(file_, model_.values[id].initializer->tensor));
    const formats::TensorInfo& info = reader->tensors()[0];
    StoredTensor tensor{.dtype = info.dtype, .shape = info.shape, .bytes = std::vector<std::byte>(info.bytes)};
    TRY(reader->read(0, 0, tensor.bytes));
    return tensor;
  }

  // Makes the tensors of a product, once for all that share them; `rope` gets new initializers.
  Result<Made> make(const Product& product, WireRope& rope) {
    const std::array key = {product.codes, product.scales, product.zeros};
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    const StoredTensor codes = TRY(load(product.codes)), scales = TRY(load(product.scales));
    std::optional<StoredTensor> zeros;
    if (product.zeros != no_value) zeros = TRY(load(product.zeros));
    const PackedProduct given{.codes = codes.bytes,
                              .scales = scales.bytes,
                              .zeros = zeros ? std::span<const std::byte>(zeros->bytes) : std::span<const std::byte>(),
                              .is_signed = codes.dtype == DType::int4,
                              .scale_bytes = static_cast<std::uint64_t>(bit_width(scales.dtype) / 8)};
    const bool to_nbits = to_ == MatMulSpelling::matmulnbits;
    const auto converted = to_nbits ? pack_product(given, product.size) : unpack_product(given, product.size);
    if (!converted) {
      return of_tensor(model_.values[product.codes].name, parse_error("its codes, scales and zero points have other "
                                                                      "sizes than their product"));
    }
    const auto count = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
    const ProductSize& size = product.size;
    const auto name_of = [&](ValueId id) {
      return values_.take(model_.values[id].name + (to_nbits ? "_nbits" : "_qdq"));
    };
    Made made{.codes = name_of(product.codes), .scales = name_of(product.scales), .zeros = {}};
    const std::vector<std::int64_t> in_blocks = {count(size.blocks()), count(size.outputs)};
    if (to_nbits) {
      rope.append(initializer_of(made.codes, DType::uint8,
                                 std::vector{count(size.outputs), count(size.blocks()), count(size.block / 2)},
                                 converted->codes));
      rope.append(initializer_of(made.scales, scales.dtype, std::vector{count(size.outputs * size.blocks())},
                                 converted->scales));
    } else {
      rope.append(initializer_of(made.codes, DType::int4, std::vector{count(size.inputs), count(size.outputs)},
                                 converted->codes));
      rope.append(initializer_of(made.scales, scales.dtype, in_blocks, converted->scales));
    }
    if (!converted->zeros.empty()) {
      made.zeros = product.zeros != no_value ? name_of(product.zeros) : values_.take(made.scales + "_zero_points");
      rope.append(to_nbits
                      ? initializer_of(made.zeros, DType::uint8,
                                       std::vector{count(size.outputs * ((size.blocks() + 1) / 2))}, converted->zeros)
                      : initializer_of(made.zeros, DType::int4, in_blocks, converted->zeros));
    }
    return made_.emplace(key, std::move(made)).first->second;
  }

  Result<void> change(const Graph& graph, Splice& around) {
    Splice splice(graph.field);
    WireRope tensors;
    for (const Node& node : graph.nodes) {
      if (const auto product = products_.find(&node); product != products_.end()) {
        const Made made = TRY(make(product->second, tensors));
        splice.replace_by_fields(node.field, WireRope(nodes_of(node, product->second, made)));
        ++outcome_.respelled;
        continue;
      }
      if (removed_.contains(&node)) {
        splice.replace_by_fields(node.field, WireRope());
        continue;
      }
      const auto inner = [&](const Graph& body, Splice& inside) { return change(body, inside); };
      TRY(splice.edit(node.field, [&](Splice& inside) { return splice_subgraphs(node, inside, inner); }));
    }
    for (const Initializer& initializer : graph.initializers) {
      if (unused_.contains(initializer.value)) splice.replace_by_fields(initializer.field, WireRope());
    }
    for (const Declaration& info : graph.infos) {
      const bool is_gone = info.value != no_value &&
                           (unused_.contains(info.value) || removed_.contains(model_.values[info.value].producer));
      if (is_gone) splice.replace_by_fields(info.field, WireRope());
    }
    if (!splice.changed()) return {};
    splice.insert(end_of(graph.field), std::move(tensors));
    around.replace(graph.field, std::move(splice).finish());
    return {};
  }

  // The nodes that stand for a product, as fields of its graph.
  std::string nodes_of(const Node& node, const Product& product, const Made& made) {
    const ProductSize& size = product.size;
    std::vector<std::string> tensors = {made.codes, made.scales};
    if (!made.zeros.empty()) tensors.push_back(made.zeros);
    if (to_ == MatMulSpelling::matmulnbits) {
      std::vector<std::string> inputs = {node.input_names[0]};
      inputs.insert(inputs.end(), tensors.begin(), tensors.end());
      const std::string product_node = encode_node(
          {"MatMulNBits",
           inputs,
           node.output_names,
           node.name,
           {encode_int_attribute("K", size.inputs), encode_int_attribute("N", size.outputs),
            encode_int_attribute("bits", std::uint64_t{4}), encode_int_attribute("block_size", size.block)}});
      return encode_field(graph_field::node, product_node + encode_field(node_field::domain, microsoft));
    }
    const std::string numbers = values_.take(made.codes + "_numbers");
    const std::string name = node.name.empty() ? std::string() : nodes_.take(node.name + "_dequantize");
    const std::string dequantize =
        encode_node({"DequantizeLinear",
                     tensors,
                     {numbers},
                     name,
                     {encode_int_attribute("axis", std::uint64_t{0}), encode_int_attribute("block_size", size.block)}});
    const std::string matmul = encode_node({"MatMul", {node.input_names[0], numbers}, node.output_names, node.name});
    return encode_field(graph_field::node, dequantize) + encode_field(graph_field::node, matmul);
  }

  Result<void> raise_opset() {
    if (model_.graph->opset("") >= blocks_opset) return {};
    if (!model_.functions.empty()) {
      return unsupported("DequantizeLinear of blocks came with opset 21, and the model has an older one, and functions",
                         "convert it with onnx.version_converter first");
    }
    TRY(upgrade_opset(model_, blocks_opset));
    outcome_.opset_after = model_.graph->opset("");
    return {};
  }

  // Opsets and the version of the file.
  Result<void> change_model(Splice& splice) {
    if (products_.empty()) return {};
    const bool to_nbits = to_ == MatMulSpelling::matmulnbits;
    for (const Opset& opset : model_.opsets) {
      if (opset.version != opset.file_version) {
        splice.replace(opset.field, WireRope(encode_opset(opset.domain, opset.version)));
      }
    }
    if (to_nbits && find_row(model_.opsets, &Opset::domain, microsoft) == nullptr) {
      splice.insert(file_.size(), WireRope(encode_field(model_field::opset_import, encode_opset(microsoft, 1))));
    }
    if (to_nbits || model_.ir_version >= int4_ir_version) return {};
    WireReader wire(file_, 0, file_.size());
    return each_field(wire, [&](const WireField& field) -> Result<void> {
      if (field.number == model_field::ir_version) {
        TRY(wire.skip(field));
        WireField whole = field;  // the length of a number is known when it is read
        whole.length = wire.position() - field.offset;
        splice.replace_by_fields(
            whole, WireRope(encode_varint_field(model_field::ir_version, std::uint64_t{int4_ir_version})));
      }
      return {};
    });
  }

  const io::InputFile& file_;
  Model& model_;
  MatMulSpelling to_;
  FreshNames values_, nodes_;
  std::vector<std::vector<const Node*>> uses_;  // of each value
  std::map<const Node*, Product> products_;
  std::set<const Node*> replaced_, removed_;
  std::set<ValueId> unused_;
  std::map<std::array<ValueId, 3>, Made> made_;
  RespellOutcome outcome_;
};

Result<RespellOutcome> respell(const RespellRequest& request) {
  const OpenModel opened = TRY(open_model(request.input));
  Respelling respelling(opened.file, *opened.model, request.to);
  WireRope rope = TRY(respelling.run());
  TRY(write_spliced(opened.file, *opened.model, std::move(rope), request.output, request.overwrite));
  return respelling.outcome();
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<RespellOutcome> respell(const RespellRequest& request) {
  return models::onnx::guarded_for_file(request.input, [&] { return models::onnx::respell(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
