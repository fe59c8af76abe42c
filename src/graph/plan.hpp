// A compiled graph: values are numbered slots, steps stand in an order in which they can run.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "graph/value_type.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

using Slot = std::size_t;
inline constexpr Slot no_slot = static_cast<Slot>(-1);  // an output that nobody uses

struct Block;

struct IfWork {
  std::shared_ptr<const Block> then_block;
  std::shared_ptr<const Block> else_block;
  // Inputs of the step after the condition: those of then_block's captures, then those of else_block's.
};

// A CastLike whose target type is known before a run is a CastOp here.
using Work = std::variant<CastOp, CastLikeOp, ConvertPromoteTypesOp, IdentityOp, ConstantOp, IfWork>;

struct Step {
  Work work;
  std::string label;  // for messages: node "NAME" (OPERATION)
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<Slot> last_uses;  // inputs that no later step and no output needs
  bool result_is_kept = false;  // it leaves the block, so that its memory should fit
};

// A graph, or a branch of one: its arguments are the graph's inputs, or the values captured from around it.
struct Block {
  std::size_t slot_count = 0;
  std::vector<Slot> arguments;
  std::vector<Step> steps;
  std::vector<Slot> outputs;
  std::vector<std::string> output_names;
  std::vector<ValueType> output_types;  // as far as they are known before a run; held against the results
};

struct PlanSettings {
  bool fuse = true;  // off only in tests, which compare
};

// Errors: as Program::compile().
[[nodiscard]] Result<Block> build_plan(const Graph& graph, const PlanSettings& settings = {});

// Replaces chains of casts by one cast where `fusible()` says so. `types` are those of the slots.
void fuse_casts(Block& block, const std::vector<ValueType>& types);

// Drops steps whose results nobody needs, and marks last uses.
void finish_lifetimes(Block& block);

}  // namespace tensorcast::graph
