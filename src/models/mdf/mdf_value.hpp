// SPDX-License-Identifier: Apache-2.0
// The value of a name in an MDF node while the graph is built, and its conversion by edges.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/mdf/mdf_tree.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::mdf {

struct Value {
  std::string name = {};  // name of the graph's value; empty: a literal or a text
  DType dtype = DType::undefined;
  std::optional<std::vector<std::int64_t>> shape = {};
  std::optional<Tensor> literal = {};
  bool is_number = false;  // a literal that is a single number, not a list
  std::string text = {};   // neither a name nor a number

  [[nodiscard]] bool is_text() const { return name.empty() && !literal; }
};

// Returns the type that a port names, if it is a DType; "float", "Tensor" and the like leave it open. The reference
// engine's arithmetic depends on the type, so under its semantics "float" and "int" are Python's.
[[nodiscard]] DType declared_type(std::string_view type, MdfSemantics semantics);
// Returns nullopt if the zeros would take more than the rest of the budget.
[[nodiscard]] std::optional<Tensor> zeros_of(DType dtype, const std::vector<std::int64_t>& shape,
                                             std::size_t& budget_bytes);
// Errors: out_of_range: a value out of the range of an integer type.
[[nodiscard]] Result<Tensor> converted_to(DType dtype, const Tensor& tensor);

// Adds the values between operators to the graph.
class Values {
 public:
  Values(Graph& graph, MdfSemantics semantics) : graph_(graph), semantics_(semantics) {}

  [[nodiscard]] bool claim(const std::string& name) { return taken_.insert(name).second; }
  [[nodiscard]] std::string fresh(const std::string& base);
  [[nodiscard]] static Result<Value> literal(const Tree& tree);

  // Returns the name of the value in the graph; a literal becomes a constant.
  [[nodiscard]] std::string in_graph(const Value& value, const std::string& base);
  [[nodiscard]] Value convert(const Value& value, DType to, const CastOptions& options, const std::string& base);
  void add(Operation operation, std::vector<std::string> inputs, std::vector<std::string> outputs,
           const std::string& node);
  // Gives the value a name that was claimed.
  void give_as(const Value& value, const std::string& name, const std::string& node);

  // Returns weight * value with NumPy's types: an integer weight keeps integer types, a real one converts integers to
  // float64, floats stay. Errors: unsupported: weights that are not numbers, values of unknown type.
  [[nodiscard]] Result<Value> weigh(const Value& value, const Tree& weight, const std::string& base);

 private:
  Result<Value> weigh_tensor(const Value& value, bool real_weight, std::int64_t integer, double real,
                             const std::string& base);

  Graph& graph_;
  MdfSemantics semantics_;
  std::set<std::string> taken_;
  std::size_t next_suffix_ = 2;
};

}  // namespace tensorcast::models::mdf
