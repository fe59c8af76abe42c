// SPDX-License-Identifier: Apache-2.0
// The operations tensorcast::Convert and tensorcast::ConvertPromoteTypes: OpenVINO's, done by tensorcast, with its
// options.
#pragma once

#include <openvino/op/op.hpp>

#include "cast_options.hpp"
#include "interface.hpp"

namespace tensorcast::openvino {

// What extension.cpp gave to this library.
[[nodiscard]] const Functions& functions();

// Attributes `destination_type`, and the options.
class Convert : public ov::op::Op {
 public:
  OPENVINO_OP("Convert", "tensorcast")

  Convert() = default;

  void validate_and_infer_types() override;
  bool visit_attributes(ov::AttributeVisitor& visitor) override;
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
  bool has_evaluate() const override;
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

 private:
  ov::element::Type destination_type_;
  CastOptions options_;
};

// The attributes of OpenVINO's; `by_text`: refuse what its text forbids and its code accepts; and the options.
class ConvertPromoteTypes : public ov::op::Op {
 public:
  OPENVINO_OP("ConvertPromoteTypes", "tensorcast")

  ConvertPromoteTypes() = default;

  void validate_and_infer_types() override;
  bool visit_attributes(ov::AttributeVisitor& visitor) override;
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
  bool has_evaluate() const override;
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

 private:
  [[nodiscard]] ov::element::Type common_type() const;

  bool promote_unsafe_ = false;
  bool pytorch_scalar_promotion_ = false;
  ov::element::Type u64_integer_promotion_target_ = ov::element::f32;
  bool by_text_ = false;
  CastOptions options_;
};

}  // namespace tensorcast::openvino
