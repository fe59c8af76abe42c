// SPDX-License-Identifier: Apache-2.0
// Finds the Casts and Identities that can be removed without changing a value, and what replaces their results.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/precision/code_pairs.hpp"
#include "models/onnx/precision/precision_plan.hpp"

namespace tensorcast::models::onnx {

enum class Removal : std::uint8_t {
  none,
  identity_cast,     // its input has the type already
  round_trip,        // it restores the input of a Cast that lost nothing
  lossy_round_trip,  // the same, but the first Cast rounds: only if the caller allows it
  code_pair,         // a QuantizeLinear that gives back the codes that a DequantizeLinear took
  duplicate,         // an earlier Cast of the graph has the same result
  identity,
  dead,  // nothing uses its result
};

class CastElision {
 public:
  struct Options {
    bool identities = false;           // Identity nodes, too
    bool lossy = false;                // pairs whose first Cast rounds
    bool only_changed = false;         // only Casts that the plan changes
    const CodePairs* codes = nullptr;  // DequantizeLinear and QuantizeLinear that change nothing, too; null: they stay
  };

  // Decides by the types of `plan`, which outlives it. Results of the model and of subgraphs keep their names.
  CastElision(const PrecisionPlan& plan, const Options& options);

  [[nodiscard]] Removal removal(const Node& node) const { return removals_[node.id]; }
  // Returns the value that replaces `id`; `id` itself if it is not replaced.
  [[nodiscard]] ValueId source(ValueId id) const;
  // Returns the name of a value: its own, or that of the graph's output that it becomes.
  [[nodiscard]] const std::string& name(ValueId id) const { return names_[id] == nullptr ? own_name(id) : *names_[id]; }
  [[nodiscard]] std::size_t removed_nodes() const noexcept { return removed_; }
  [[nodiscard]] std::size_t removed_casts() const noexcept { return removed_casts_; }

 private:
  struct Use {
    const Graph* graph = nullptr;
    bool is_output = false;  // of that graph
  };
  struct Found {
    Removal removal = Removal::none;
    ValueId source = no_value;
  };

  [[nodiscard]] const std::string& own_name(ValueId id) const { return plan_.model().values[id].name; }
  void collect(const Graph& graph);
  void clean(const Graph& graph);
  [[nodiscard]] bool examine(const Graph& graph);
  [[nodiscard]] Found find(const Node& node, const Graph& graph);
  [[nodiscard]] Found find_round_trip(const Node& node, const Graph& graph) const;
  [[nodiscard]] Found find_code_pair(const Node& node, const Graph& graph) const;
  [[nodiscard]] bool is_candidate(const Node& node) const;
  [[nodiscard]] bool can_replace(ValueId result, ValueId source, const Graph& graph) const;
  void replace(const Node& node, const Found& found);
  [[nodiscard]] bool remove_dead(const Graph& graph);
  [[nodiscard]] bool is_changed(const Node& node) const;
  [[nodiscard]] bool is_output_of_a_graph(ValueId id) const;
  [[nodiscard]] bool is_annotated(ValueId id) const;
  void drop(const Node& node, Removal removal);

  const PrecisionPlan& plan_;
  Options options_;
  std::vector<Removal> removals_;                                       // by node
  mutable std::vector<ValueId> sources_;                                // by value; source() shortens paths
  std::vector<const std::string*> names_;                               // by value; null: its own
  std::vector<std::vector<Use>> uses_;                                  // by value, of all values that it replaced, too
  std::vector<std::size_t> use_counts_;                                 // by value: nodes and outputs that are left
  std::vector<bool> was_used_;                                          // by value
  std::map<std::pair<ValueId, std::string>, const Node*> first_casts_;  // by source and what it becomes
  std::size_t removed_ = 0;
  std::size_t removed_casts_ = 0;
};

// Says why in words.
[[nodiscard]] std::string_view reason_of(Removal removal);

// Returns false for every other operator.
[[nodiscard]] inline bool is_cast(const Node& node) noexcept {
  return node.domain.empty() && (node.op_type == "Cast" || node.op_type == "CastLike");
}

}  // namespace tensorcast::models::onnx
