// SPDX-License-Identifier: Apache-2.0
// A compiled graph: values are numbered slots, steps are in an order in which they can run.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "graph/value_type.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

using Slot = std::size_t;
inline constexpr Slot no_slot = static_cast<Slot>(-1);  // an unused output

struct Block;

struct IfWork {
  std::shared_ptr<const Block> then_block;
  std::shared_ptr<const Block> else_block;
  // The inputs of the step are the condition, then_block's captures, then else_block's.
};

// A CastLike whose target type is known before a run is a CastOp here.
using Work = std::variant<CastOp, CastLikeOp, ConvertPromoteTypesOp, IdentityOp, ConstantOp, IfWork, BitCastOp,
                          QuantizeLinearOp, DequantizeLinearOp, DynamicQuantizeLinearOp>;

struct Step {
  Work work;
  std::string label;  // for messages: node "NAME" (OPERATION)
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<Slot> last_uses;  // inputs that neither a later step nor an output needs
  bool result_is_kept = false;  // the result leaves the block, so its buffer should not be larger than needed
};

// A graph, or a branch of one. Its arguments are the graph's inputs, or the values captured from the enclosing blocks.
struct Block {
  std::size_t slot_count = 0;
  std::vector<Slot> arguments;
  std::vector<Step> steps;
  std::vector<Slot> outputs;
  std::vector<std::string> output_names;
  std::vector<ValueType> output_types;  // as far as known before a run; checked against the results
};

struct PlanSettings {
  bool fuse = true;  // off only in tests, which compare both
};

// Errors: as Program::compile().
[[nodiscard]] Result<Block> build_plan(const Graph& graph, const PlanSettings& settings = {});

// Replaces chains of casts by one cast if `fusible()` allows it. `types` are the types of the slots.
void fuse_casts(Block& block, const std::vector<ValueType>& types);

// Removes steps whose results are unused, and marks last uses.
void finish_lifetimes(Block& block);

}  // namespace tensorcast::graph
