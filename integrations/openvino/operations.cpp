// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <tbb/parallel_for.h>
#include <openvino/core/op_extension.hpp>
#include <openvino/op/convert_promote_types.hpp>
#include <openvino/op/parameter.hpp>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tensorcast::openvino {
namespace {

const Functions* given_functions = nullptr;

struct TypeName {
  const char* name;
  tc_dtype type;
};
// By OpenVINO's name, as its numbers change with its releases. Its u1, u2, u3, u6, nf4 are stored otherwise than ONNX's
// types, or are not among them.
constexpr std::array<TypeName, 19> type_names = {{
    {"f64", 11},    {"f32", 1}, {"f16", 10}, {"bf16", 16}, {"f8e4m3", 17}, {"f8e5m2", 19}, {"f8e8m0", 24},
    {"f4e2m1", 23}, {"i64", 7}, {"i32", 6},  {"i16", 5},   {"i8", 3},      {"i4", 22},     {"u64", 13},
    {"u32", 12},    {"u16", 4}, {"u8", 2},   {"u4", 21},   {"boolean", 9},
}};

// 0 for a type that tensorcast lacks.
tc_dtype dtype_of(const ov::element::Type& type) {
  const std::string name = type.get_type_name();
  for (const TypeName& known : type_names) {
    if (name == known.name) return known.type;
  }
  return 0;
}

[[noreturn]] void fail(const ov::Node& node, const std::string& message) {
  throw std::runtime_error("tensorcast: " + node.get_friendly_name() + ": " + message);
}

tc_cast_options checked(const ov::Node& node, const CastOptions& options) {
  tc_cast_options result = options.checked();
  // An empty conversion checks the values, and what they allow together.
  if (functions().cast(nullptr, 1, nullptr, 1, 0, &result) != TC_OK) fail(node, functions().last_error());
  return result;
}

// The threads of OpenVINO, of the arena in which the operation runs.
void run_on_pool(void*, std::size_t count, tc_task task, void* work) {
  tbb::parallel_for(std::size_t{0}, count, [&](std::size_t index) { task(work, index); });
}

bool convert(const ov::Node& node, ov::Tensor& dst, const ov::Tensor& src, const CastOptions& given) {
  const tc_dtype from = dtype_of(src.get_element_type());
  const tc_dtype to = dtype_of(dst.get_element_type());
  if (from == 0 || to == 0) return false;
  dst.set_shape(src.get_shape());
  const std::size_t count = src.get_size();
  if (count == 0) return true;
  if (!src.is_continuous() || !dst.is_continuous()) return false;
  tc_cast_options options = given.checked();
  options.executor = run_on_pool;
  if (functions().cast(src.data(), from, dst.data(), to, count, &options) != TC_OK)
    fail(node, functions().last_error());
  return true;
}

bool is_scalar(const ov::PartialShape& shape) { return shape.rank().is_static() && shape.rank().get_length() == 0; }

}  // namespace

const Functions& functions() { return *given_functions; }

void Convert::validate_and_infer_types() {
  if (get_input_size() != 1) fail(*this, "Convert has one input, not " + std::to_string(get_input_size()));
  static_cast<void>(checked(*this, options_));
  const ov::element::Type from = get_input_element_type(0);
  for (const ov::element::Type& type : {from, destination_type_}) {
    if (type.is_static() && dtype_of(type) == 0) fail(*this, "no cast knows " + type.get_type_name());
  }
  if (!destination_type_.is_static()) fail(*this, "destination_type is missing");
  set_output_type(0, destination_type_, get_input_partial_shape(0));
}

bool Convert::visit_attributes(ov::AttributeVisitor& visitor) {
  visitor.on_attribute("destination_type", destination_type_);
  options_.visit(visitor);
  return true;
}

std::shared_ptr<ov::Node> Convert::clone_with_new_inputs(const ov::OutputVector& inputs) const {
  auto clone = std::make_shared<Convert>();
  clone->destination_type_ = destination_type_;
  clone->options_ = options_;
  clone->set_arguments(inputs);
  clone->constructor_validate_and_infer_types();
  return clone;
}

bool Convert::has_evaluate() const {
  return dtype_of(get_input_element_type(0)) != 0 && dtype_of(destination_type_) != 0;
}

bool Convert::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
  return convert(*this, outputs.at(0), inputs.at(0), options_);
}

ov::element::Type ConvertPromoteTypes::common_type() const {
  const ov::element::Type a = get_input_element_type(0);
  const ov::element::Type b = get_input_element_type(1);
  if (a.is_dynamic() || b.is_dynamic()) return ov::element::dynamic;
  const ov::PartialShape& a_shape = get_input_partial_shape(0);
  const ov::PartialShape& b_shape = get_input_partial_shape(1);
  if (pytorch_scalar_promotion_ && (a_shape.rank().is_dynamic() || b_shape.rank().is_dynamic())) {
    return ov::element::dynamic;
  }
  if (by_text_) {
    tc_promote_options options = {};
    functions().promote_options_init(&options, sizeof(options));
    options.promote_unsafe = promote_unsafe_ ? 1 : 0;
    options.pytorch_scalar_promotion = pytorch_scalar_promotion_ ? 1 : 0;
    options.u64_integer_promotion_target = dtype_of(u64_integer_promotion_target_);
    tc_dtype common = 0;
    if (functions().promote(dtype_of(a), is_scalar(a_shape) ? 1 : 0, dtype_of(b), is_scalar(b_shape) ? 1 : 0, &options,
                            &common) != TC_OK) {
      fail(*this, functions().last_error());
    }
  }
  // OpenVINO's own inference, on inputs of its own, so that the model does not see it.
  const auto first = std::make_shared<ov::op::v0::Parameter>(a, a_shape);
  const auto second = std::make_shared<ov::op::v0::Parameter>(b, b_shape);
  return ov::op::v14::ConvertPromoteTypes(first, second, promote_unsafe_, pytorch_scalar_promotion_,
                                          u64_integer_promotion_target_)
      .get_output_element_type(0);
}

void ConvertPromoteTypes::validate_and_infer_types() {
  if (get_input_size() != 2) fail(*this, "two inputs are needed, not " + std::to_string(get_input_size()));
  static_cast<void>(checked(*this, options_));
  for (std::size_t i = 0; i < 2; ++i) {
    const ov::element::Type type = get_input_element_type(i);
    if (type.is_static() && dtype_of(type) == 0) fail(*this, "no cast knows " + type.get_type_name());
  }
  const ov::element::Type common = common_type();
  set_output_size(2);
  for (std::size_t i = 0; i < 2; ++i) set_output_type(i, common, get_input_partial_shape(i));
}

bool ConvertPromoteTypes::visit_attributes(ov::AttributeVisitor& visitor) {
  visitor.on_attribute("promote_unsafe", promote_unsafe_);
  visitor.on_attribute("pytorch_scalar_promotion", pytorch_scalar_promotion_);
  visitor.on_attribute("u64_integer_promotion_target", u64_integer_promotion_target_);
  visitor.on_attribute("by_text", by_text_);
  options_.visit(visitor);
  return true;
}

std::shared_ptr<ov::Node> ConvertPromoteTypes::clone_with_new_inputs(const ov::OutputVector& inputs) const {
  auto clone = std::make_shared<ConvertPromoteTypes>();
  clone->promote_unsafe_ = promote_unsafe_;
  clone->pytorch_scalar_promotion_ = pytorch_scalar_promotion_;
  clone->u64_integer_promotion_target_ = u64_integer_promotion_target_;
  clone->by_text_ = by_text_;
  clone->options_ = options_;
  clone->set_arguments(inputs);
  clone->constructor_validate_and_infer_types();
  return clone;
}

bool ConvertPromoteTypes::has_evaluate() const {
  return dtype_of(get_input_element_type(0)) != 0 && dtype_of(get_input_element_type(1)) != 0;
}

bool ConvertPromoteTypes::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
  for (std::size_t i = 0; i < 2; ++i) {
    if (outputs.at(i).get_element_type() == inputs.at(i).get_element_type()) {
      inputs.at(i).copy_to(outputs.at(i));  // has the common type already, so that the options do not concern it
    } else if (!convert(*this, outputs.at(i), inputs.at(i), options_)) {
      return false;
    }
  }
  return true;
}

}  // namespace tensorcast::openvino

extern "C" __attribute__((visibility("default"))) void tensorcast_openvino_create(
    void* extensions, const tensorcast::openvino::Functions& functions) {
  namespace own = tensorcast::openvino;
  own::given_functions = &functions;
  auto& list = *static_cast<std::vector<ov::Extension::Ptr>*>(extensions);
  list.push_back(std::make_shared<ov::OpExtension<own::Convert>>());
  list.push_back(std::make_shared<ov::OpExtension<own::ConvertPromoteTypes>>());
}
