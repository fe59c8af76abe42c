// SPDX-License-Identifier: Apache-2.0
// Component models. Cast and CastLike as layers of a network that trains: forward, and backward for the gradient.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The parameters of Graiphic's (HAIBAL's) Cast node, followed by ours. Its `saturate` is options.saturate.
struct CastNodeParameters {
  std::vector<std::string> specified_outputs_name = {};  // at most one, as there is one output
  std::string name = {};
  DType to = DType::undefined;  // must be set for CastNode and must not for CastLikeNode
  bool training = true;         // forward() keeps what backward() needs
  double lda_coeff = 1.0;       // finite; the gradient is multiplied by it on its way to the previous layer
  CastOptions options = {};
  Execution execution = {};
  bool zero_saturated_gradient =
      false;  // no gradient where forward() saturated: the clipped straight-through estimator
};

// The part that CastNode and CastLikeNode share. A node is used by one thread at a time; copies are independent.
//
// The gradient of a conversion is our definition, because the operators' texts have none. Graiphic's text defines only
// "lda coeff": "the coefficient by which the loss derivative will be multiplied before being sent to the previous
// layer". We take the straight-through estimator, which is what PyTorch's autograd does for Tensor.to(): the gradient
// passes as if the conversion were the identity, in the type of the input:
//
//   grad_input = cast(lda_coeff * grad_output, input's type), with a single rounding (CastOptions::scale)
//
// under the node's saturate and round_mode and the rules of the newest opset. A conversion from or to integers, bool
// or strings has no gradient.
class CastNodeBase {
 public:
  // Returns the gradient of the input of the last forward(). May be called any number of times.
  //
  // Sizes    grad_output has the shape of the output and any floating-point type, normally that of the output.
  // Loss     one rounding; shares grad_output's elements if nothing changes.
  // Errors   invalid_argument: no forward() before, or one that was not in training mode or failed; another shape, or
  //          a type that is not floating point. unsupported: an integer, bool or string end. Messages name the node.
  [[nodiscard]] TENSORCAST_API Result<Tensor> backward(const Tensor& grad_output) const;

  [[nodiscard]] const CastNodeParameters& parameters() const noexcept { return parameters_; }
  // The name of the output: the specified one, or one made from the node's.
  [[nodiscard]] const std::string& output_name() const noexcept { return output_name_; }
  // Bytes of the mask of saturated elements that the last forward() saved for backward().
  [[nodiscard]] std::size_t saved_bytes() const noexcept { return saved_ ? saved_->saturated.size() : 0; }

 protected:
  CastNodeBase(CastNodeParameters parameters, const char* operation);
  [[nodiscard]] Result<std::vector<NamedTensor>> convert(const Tensor& input, DType to);

 private:
  struct Saved {
    DType from = DType::undefined;
    DType to = DType::undefined;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> saturated;  // a bit for each element, low bits first; empty if none saturated
  };

  CastNodeParameters parameters_;
  const char* operation_;
  std::string output_name_;
  bool ran_ = false;  // forward() was called at least once, in any mode
  std::optional<Saved> saved_;
};

class CastNode : public CastNodeBase {
 public:
  // Errors: invalid_argument: no type to cast to, more names than outputs or an empty one, an lda_coeff that is not
  // finite, options that cast() does not accept; unsupported: a type or attribute newer than options.opset.
  [[nodiscard]] TENSORCAST_API static Result<CastNode> create(CastNodeParameters parameters);

  // Returns the one output with its name. `input` has any castable type; the output shares its elements if the type
  // does not change. Errors: as cast(), and parse for strings. Messages name the node. After an error, backward() fails
  // until a forward() succeeds.
  [[nodiscard]] TENSORCAST_API Result<std::vector<NamedTensor>> forward(const Tensor& input);

 private:
  using CastNodeBase::CastNodeBase;
};

class CastLikeNode : public CastNodeBase {
 public:
  // Errors: as CastNode::create(); also when `to` is set, and for options.opset below 15, the first with CastLike.
  [[nodiscard]] TENSORCAST_API static Result<CastLikeNode> create(CastNodeParameters parameters);

  // Casts `input` to the dtype of `target_type`, whose elements are ignored and which gets no gradient.
  // Errors: as CastNode.
  [[nodiscard]] TENSORCAST_API Result<std::vector<NamedTensor>> forward(const Tensor& input, const Tensor& target_type);

 private:
  using CastNodeBase::CastNodeBase;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
