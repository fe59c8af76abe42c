// SPDX-License-Identifier: Apache-2.0
#include "graph/run_plan.hpp"

#include <utility>

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "graph/graph_value.hpp"
#include "graph/inference.hpp"
#include "graph/linear_quantization.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast::graph {
namespace {

using Values = std::vector<Value>;

class BlockRun {
 public:
  BlockRun(const Block& block, RunContext& context) : block_(block), context_(context), slots_(block.slot_count) {}

  Result<Values> run(Values arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) slots_[block_.arguments[i]] = std::move(arguments[i]);
    for (const Step& step : block_.steps) {
      Values inputs;
      inputs.reserve(step.inputs.size());
      for (const Slot slot : step.inputs) inputs.push_back(slots_[slot]);
      for (const Slot slot : step.last_uses) slots_[slot] = {};
      Values outputs = TRY(at(step.label, run_step(step, std::move(inputs))));
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] != no_slot) slots_[step.outputs[i]] = std::move(outputs[i]);
      }
    }
    Values results;
    for (std::size_t i = 0; i < block_.outputs.size(); ++i) {
      const Value& result = slots_[block_.outputs[i]];
      Result<ValueType> agreed = both(type_of(result.tensor), block_.output_types[i]);
      if (!agreed) return at(fmt::format("output \"{}\"", block_.output_names[i]), std::move(agreed).error());
      results.push_back(result);
    }
    return results;
  }

 private:
  Result<Values> run_step(const Step& step, Values inputs) {
    if (const auto* cast = std::get_if<CastOp>(&step.work)) {
      return single(convert(std::move(inputs[0]), cast->to, cast->options, step.result_is_kept));
    }
    if (const auto* cast = std::get_if<CastLikeOp>(&step.work)) {
      const DType to = inputs[1].tensor.dtype();
      inputs.pop_back();
      return single(convert(std::move(inputs[0]), to, cast->options, step.result_is_kept));
    }
    if (const auto* promotion = std::get_if<ConvertPromoteTypesOp>(&step.work)) {
      return promote(*promotion, std::move(inputs), step);
    }
    if (const auto* constant = std::get_if<ConstantOp>(&step.work)) return Values{{constant->value, nullptr}};
    if (const auto* choice = std::get_if<IfWork>(&step.work)) return choose(*choice, std::move(inputs));
    if (const auto* bits = std::get_if<BitCastOp>(&step.work)) return single(bit_cast(std::move(inputs[0]), bits->to));
    const ConversionPlace place{context_.pool, step.result_is_kept};
    if (const auto* linear = std::get_if<QuantizeLinearOp>(&step.work)) {
      return single(quantize_linear(*linear, inputs, context_.execution, place));
    }
    if (const auto* linear = std::get_if<DequantizeLinearOp>(&step.work)) {
      return single(dequantize_linear(*linear, inputs, context_.execution, place));
    }
    if (std::holds_alternative<DynamicQuantizeLinearOp>(step.work)) {
      return dynamic_quantize_linear(inputs[0], context_.execution, place);
    }
    return inputs;  // Identity
  }

  static Result<Values> single(Result<Value> value) {
    Values values(1);
    values[0] = TRY(std::move(value));
    return values;
  }

  Result<Values> promote(const ConvertPromoteTypesOp& promotion, Values inputs, const Step& step) {
    const auto operand = [](const Tensor& tensor) { return PromoteOperand{tensor.dtype(), tensor.shape().empty()}; };
    DType common = TRY(promote_types(operand(inputs[0].tensor), operand(inputs[1].tensor), promotion.promote));
    Values outputs(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (step.outputs[i] == no_slot) {
        inputs[i] = {};
        continue;
      }
      outputs[i] = TRY(convert(std::move(inputs[i]), common, promotion.options, step.result_is_kept));
    }
    return outputs;
  }

  Result<Values> choose(const IfWork& choice, Values inputs) {
    const Tensor condition = inputs[0].tensor;
    if (condition.dtype() != DType::boolean || condition.count() != 1) {
      return invalid(fmt::format("its condition is a bool of one element, not {}", describe(type_of(condition))));
    }
    const bool is_then = condition.bytes()[0] != std::byte{0};
    const std::size_t then_count = choice.then_block->arguments.size();
    const Block& block = is_then ? *choice.then_block : *choice.else_block;
    Values arguments;
    for (std::size_t i = 0; i < block.arguments.size(); ++i) {
      arguments.push_back(std::move(inputs[1 + (is_then ? 0 : then_count) + i]));
    }
    inputs.clear();
    return at(is_then ? "then branch" : "else branch", BlockRun(block, context_).run(std::move(arguments)));
  }

  Result<Value> convert(Value src, DType to, const CastOptions& options, bool is_kept) {
    return graph::convert(std::move(src), to, options, context_.execution, {context_.pool, is_kept});
  }

  const Block& block_;
  RunContext& context_;
  Values slots_;
};

}  // namespace

Result<std::vector<Tensor>> run_plan(const Block& block, std::span<const Tensor> arguments, RunContext& context) {
  Values values;
  for (const Tensor& argument : arguments) values.push_back({argument, nullptr});
  Values results = TRY(BlockRun(block, context).run(std::move(values)));
  std::vector<Tensor> tensors;
  for (Value& result : results) tensors.push_back(std::move(result.tensor));
  return tensors;
}

}  // namespace tensorcast::graph
