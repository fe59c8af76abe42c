// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/node.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "codec/reference_cast.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "graph/graph_value.hpp"
#include "graph/inference.hpp"
#include "graph/saturation.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

std::string label(const CastNodeParameters& parameters, const char* operation) {
  return parameters.name.empty() ? fmt::format("{} node", operation)
                                 : fmt::format("node \"{}\" ({})", parameters.name, operation);
}

Result<void> check_parameters(const CastNodeParameters& parameters) {
  const std::vector<std::string>& names = parameters.specified_outputs_name;
  if (names.size() > 1) {
    return invalid(fmt::format("specified_outputs_name has {} names, but the node has 1 output", names.size()));
  }
  if (!names.empty() && names[0].empty()) return invalid("specified_outputs_name has an empty name");
  if (!std::isfinite(parameters.lda_coeff)) return invalid("lda_coeff must be a finite number");
  return graph::check_cast(parameters.options, DType::undefined, parameters.to);
}

// Uses the newest opset: the gradient's type may be newer than the node's opset.
CastOptions gradient_options(const CastNodeParameters& parameters) {
  CastOptions options;
  options.saturate = parameters.options.saturate;
  options.round_mode = parameters.options.round_mode;
  options.scale = parameters.lda_coeff;
  return options;
}

// Replaces the gradient by a cast zero at each bit of `mask`; float8_e8m0fnu has no zero.
Result<Tensor> with_zeros(const Tensor& gradient, const std::vector<std::byte>& mask, const CastOptions& options) {
  const codec::Policy policy = TRY(codec::resolve_policy(options, DType::float32, gradient.dtype()));
  const std::uint64_t zero = codec::cast_code(DType::float32, 0, gradient.dtype(), policy).bits;
  std::vector<std::byte> bytes(gradient.bytes().begin(), gradient.bytes().end());
  for (std::size_t byte = 0; byte < mask.size(); ++byte) {
    if (mask[byte] == std::byte{0}) continue;
    for (std::size_t bit = 0; bit < 8; ++bit) {
      if ((mask[byte] & (std::byte{1} << bit)) == std::byte{0}) continue;
      codec::store_code(gradient.dtype(), bytes.data(), byte * 8 + bit, zero);
    }
  }
  return Tensor::own(gradient.dtype(), gradient.shape(), std::move(bytes));
}

bool is_floating(DType dtype) { return family(dtype) == Family::floating; }

}  // namespace

CastNodeBase::CastNodeBase(CastNodeParameters parameters, const char* operation)
    : parameters_(std::move(parameters)), operation_(operation) {
  if (!parameters_.specified_outputs_name.empty()) {
    output_name_ = parameters_.specified_outputs_name[0];
  } else {
    output_name_ = (parameters_.name.empty() ? operation : parameters_.name) + std::string("_output");
  }
}

Result<std::vector<NamedTensor>> CastNodeBase::convert(const Tensor& input, DType to) {
  ran_ = true;
  saved_.reset();
  const auto failed = [&](Error error) { return at(label(parameters_, operation_), std::move(error)); };
  if (!input.defined() || to == DType::undefined) {
    return failed(invalid(input.defined() ? "target_type is an undefined tensor" : "the input is an undefined tensor"));
  }
  Result<std::vector<NamedTensor>> made = guarded([&]() -> Result<std::vector<NamedTensor>> {
    graph::BufferPool pool(parameters_.execution.memory);
    graph::Value output = TRY(graph::convert({input, nullptr}, to, parameters_.options, parameters_.execution,
                                             {.pool = pool, .is_kept = true}));
    if (parameters_.training) {
      Saved saved{input.dtype(), to, {input.shape().begin(), input.shape().end()}, {}};
      if (parameters_.zero_saturated_gradient && is_floating(saved.from) && is_floating(to)) {
        saved.saturated = TRY(graph::saturated_elements(input, output.tensor, parameters_.options));
      }
      saved_ = std::move(saved);
    }
    std::vector<NamedTensor> outputs;
    outputs.push_back({output_name_, std::move(output.tensor)});
    return outputs;
  });
  return made ? std::move(made) : failed(std::move(made).error());
}

Result<Tensor> CastNodeBase::backward(const Tensor& grad_output) const {
  const auto failed = [&](Error error) { return at(label(parameters_, operation_), std::move(error)); };
  if (!saved_) {
    if (!ran_) return failed(invalid("backward needs a forward before it"));
    if (!parameters_.training) {
      return failed(invalid("backward needs a forward in training mode", "set training, and run forward again"));
    }
    return failed(invalid("backward needs a forward that succeeded"));
  }
  for (const DType end : {saved_->from, saved_->to}) {
    if (is_floating(end)) continue;
    return failed(
        unsupported(fmt::format("a conversion from {} to {} has no gradient, because {} is not floating point",
                                name(saved_->from), name(saved_->to), name(end))));
  }
  if (!is_floating(grad_output.dtype())) {
    return failed(invalid(grad_output.defined()
                              ? fmt::format("a gradient is of a floating-point type, not {}", name(grad_output.dtype()))
                              : "the gradient is an undefined tensor"));
  }
  if (!std::ranges::equal(grad_output.shape(), saved_->shape)) {
    const graph::ValueType wanted{saved_->to, saved_->shape};
    return failed(invalid(fmt::format("the gradient is {}, but the output was {}",
                                      graph::describe(graph::type_of(grad_output)), graph::describe(wanted))));
  }
  Result<Tensor> gradient = guarded([&]() -> Result<Tensor> {
    const CastOptions options = gradient_options(parameters_);
    graph::BufferPool pool(parameters().execution.memory);
    graph::Value converted = TRY(graph::convert({grad_output, nullptr}, saved_->from, options, parameters().execution,
                                                {.pool = pool, .is_kept = true}));
    if (saved_->saturated.empty()) return std::move(converted.tensor);
    return with_zeros(converted.tensor, saved_->saturated, options);
  });
  return gradient ? std::move(gradient) : failed(std::move(gradient).error());
}

Result<CastNode> CastNode::create(CastNodeParameters parameters) {
  const std::string named = label(parameters, "Cast");
  if (parameters.to == DType::undefined) {
    return at(named, invalid("the type to cast to is undefined", "set `to` to one of the types of Cast"));
  }
  TRY(at(named, check_parameters(parameters)));
  return CastNode(std::move(parameters), "Cast");
}

Result<std::vector<NamedTensor>> CastNode::forward(const Tensor& input) { return convert(input, parameters().to); }

Result<CastLikeNode> CastLikeNode::create(CastNodeParameters parameters) {
  const std::string named = label(parameters, "CastLike");
  if (parameters.to != DType::undefined) {
    return at(named, invalid(fmt::format("CastLike has no `to`, but it is {}", name(parameters.to)),
                             "its second input gives the type"));
  }
  TRY(at(named, graph::check_cast_like(parameters.options)));
  TRY(at(named, check_parameters(parameters)));
  return CastLikeNode(std::move(parameters), "CastLike");
}

Result<std::vector<NamedTensor>> CastLikeNode::forward(const Tensor& input, const Tensor& target_type) {
  return convert(input, target_type.dtype());
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
