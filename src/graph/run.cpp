#include "graph/run.hpp"

#include <utility>

#include <fmt/format.h>

#include "graph/inference.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast::graph {
namespace {

// Below this a conversion runs on one thread anyway, so that nothing is lost by narrowing in place.
constexpr std::size_t narrow_in_place_below_bytes = std::size_t{1} << 20;

struct Value {
  Tensor tensor;
  std::shared_ptr<Buffer> buffer;  // memory of the run's pool; null: someone else's, not to be written

  // Whether nothing but this value uses its memory: itself and its tensor are the two owners.
  [[nodiscard]] bool may_be_overwritten() const { return buffer != nullptr && buffer.use_count() == 2; }
};

using Values = std::vector<Value>;

// Whether the unused bits of the last byte are zero, as a conversion would leave them.
bool has_clean_tail(const Tensor& tensor) {
  const auto used_bits = tensor.count() % 8 * static_cast<std::size_t>(bit_width(tensor.dtype())) % 8;
  return used_bits == 0 || (std::to_integer<unsigned>(tensor.bytes().back()) >> used_bits) == 0;
}

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
      Result<Values> outputs = run_step(step, std::move(inputs));
      if (!outputs) return at(step.label, std::move(outputs).error());
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] != no_slot) slots_[step.outputs[i]] = std::move((*outputs)[i]);
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
    return inputs;  // Identity
  }

  static Result<Values> single(Result<Value> value) {
    if (!value) return std::move(value).error();
    Values values;
    values.push_back(*std::move(value));
    return values;
  }

  Result<Values> promote(const ConvertPromoteTypesOp& promotion, Values inputs, const Step& step) {
    const auto operand = [](const Tensor& tensor) { return PromoteOperand{tensor.dtype(), tensor.shape().empty()}; };
    Result<DType> common = promote_types(operand(inputs[0].tensor), operand(inputs[1].tensor), promotion.promote);
    if (!common) return std::move(common).error();
    Values outputs(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (step.outputs[i] == no_slot) {
        inputs[i] = {};
        continue;
      }
      Result<Value> converted = convert(std::move(inputs[i]), *common, promotion.options, step.result_is_kept);
      if (!converted) return std::move(converted).error();
      outputs[i] = *std::move(converted);
    }
    return outputs;
  }

  Result<Values> choose(const IfWork& choice, Values inputs) {
    const Tensor condition = inputs[0].tensor;
    if (condition.dtype() != DType::boolean || condition.count() != 1) {
      return Error{
          .code = ErrorCode::invalid_argument,
          .message = fmt::format("its condition is a bool of one element, not {}", describe(type_of(condition)))};
    }
    const bool is_then = condition.bytes()[0] != std::byte{0};
    const std::size_t then_count = choice.then_block->arguments.size();
    const Block& block = is_then ? *choice.then_block : *choice.else_block;
    Values arguments;
    for (std::size_t i = 0; i < block.arguments.size(); ++i) {
      arguments.push_back(std::move(inputs[1 + (is_then ? 0 : then_count) + i]));
    }
    inputs.clear();
    Result<Values> results = BlockRun(block, context_).run(std::move(arguments));
    if (!results) return at(is_then ? "then branch" : "else branch", std::move(results).error());
    return results;
  }

  Result<Value> convert(Value src, DType to, CastOptions options, bool result_is_kept) {
    options.threads = context_.threads;
    const Tensor& tensor = src.tensor;
    if (tensor.dtype() == to && options.scale == 1.0 && (to == DType::string || has_clean_tail(tensor))) {
      if (Result<void> checked = check_cast(options, to, to); !checked) return std::move(checked).error();
      return src;  // the bits would be the same
    }
    if (to == DType::string) return to_strings(tensor, options);
    Result<Value> dst = target_for(src, to, result_is_kept);
    if (!dst) return dst;
    // The target may lie over the source, where the tensor of the source is not looked at any more.
    const MutableTensorView view{to, dst->tensor.shape(), {dst->buffer->data, dst->tensor.bytes().size()}};
    const Result<void> done = tensor.dtype() == DType::string ? cast_from_strings(tensor.strings(), view, options)
                                                              : cast(tensor.view(), view, options);
    if (!done) return done.error();
    return dst;
  }

  static Result<Value> to_strings(const Tensor& tensor, const CastOptions& options) {
    Result<StringBuffer> strings = cast_to_strings(tensor.view(), options);
    if (!strings) return std::move(strings).error();
    Result<Tensor> result = Tensor::own({tensor.shape().begin(), tensor.shape().end()}, *std::move(strings));
    if (!result) return std::move(result).error();
    return Value{*std::move(result), nullptr};
  }

  // Memory for the result: that of the source, if nobody else reads it and nothing is lost by it, or other.
  Result<Value> target_for(const Value& src, DType to, bool result_is_kept) {
    const std::size_t bytes = storage_bytes(to, src.tensor.count());
    const std::size_t src_bytes = src.tensor.bytes().size();
    const bool same_width = bit_width(to) == bit_width(src.tensor.dtype());
    // Narrowing in place is not threaded, and a result that is kept would keep more memory than it needs.
    const bool may_narrow = bit_width(to) < bit_width(src.tensor.dtype()) && !result_is_kept &&
                            (context_.threads == 1 || src_bytes < narrow_in_place_below_bytes);
    std::shared_ptr<Buffer> buffer;
    if (src.may_be_overwritten() && (same_width || may_narrow)) {
      buffer = src.buffer;
    } else {
      buffer = context_.pool.acquire(bytes, result_is_kept);
    }
    if (buffer == nullptr) {
      return Error{
          .code = ErrorCode::internal,
          .message = fmt::format("there is not enough memory for {} elements of {}", src.tensor.count(), name(to))};
    }
    Result<Tensor> tensor = Tensor::share({to, src.tensor.shape(), {buffer->data, bytes}}, buffer);
    if (!tensor) return std::move(tensor).error();
    return Value{*std::move(tensor), std::move(buffer)};
  }

  const Block& block_;
  RunContext& context_;
  Values slots_;
};

}  // namespace

Result<std::vector<Tensor>> run_plan(const Block& block, std::span<const Tensor> arguments, RunContext& context) {
  Values values;
  for (const Tensor& argument : arguments) values.push_back({argument, nullptr});
  Result<Values> results = BlockRun(block, context).run(std::move(values));
  if (!results) return std::move(results).error();
  std::vector<Tensor> tensors;
  for (Value& result : *results) tensors.push_back(std::move(result.tensor));
  return tensors;
}

}  // namespace tensorcast::graph
