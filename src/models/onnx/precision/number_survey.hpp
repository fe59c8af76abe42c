// SPDX-License-Identifier: Apache-2.0
// Surveys the numbers of initializers and constants before a conversion: those that the new type does not hold keep
// their type, and so do the nodes that need them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "io/input_file.hpp"
#include "models/onnx/precision/precision_plan.hpp"
#include "models/onnx/precision/tensor_conversion.hpp"
#include "models/onnx/precision/weight_quantization.hpp"

namespace tensorcast::models::onnx {

class NumberSurvey {
 public:
  struct Finding {
    ValueId value = no_value;
    TensorNumbers numbers;
    bool has_limit = false;  // overflowing numbers become finite
  };

  // The arguments outlive the survey. `weights`: null: weights get no scales.
  NumberSurvey(const io::InputFile& file, const WeightRecipe* weights, PrecisionPlan& plan);

  // Surveys all initializers and constants that may change, and tells the plan which keep their type. Errors: parse,
  // unsupported, io; out_of_range: numbers that the type does not hold, if the request wants that to be an error.
  [[nodiscard]] Result<void> run();
  [[nodiscard]] const std::vector<Finding>& findings() const noexcept { return findings_; }
  // Returns the weights that could get scales, and get none.
  [[nodiscard]] const std::vector<::tensorcast::onnx::KeptWeight>& kept() const noexcept { return kept_; }

 private:
  // An input of a node.
  using Use = std::pair<const Node*, std::size_t>;
  // How a value that is too small for the type does harm.
  enum class Role : std::uint8_t {
    number,  // any other
    factor,  // a product has its relative error, which counts if no number is a good one
    scale,   // a divisor, what a Log takes, or the scale of codes: one wrong number makes a part of the result wrong
  };

  class Seen {
   public:
    // Returns false if the value was there, or there are too many.
    bool add(ValueId id);
    bool add(const Node& node);  // its first output

   private:
    std::unordered_set<ValueId> ids_;
  };
  struct Call {
    const Function* function;
    const Node* node;
    const Graph* graph;  // that has the node
  };

  void link(const Node& node, const Graph& graph);
  [[nodiscard]] bool follows(ValueId same, Seen& seen) const;

  [[nodiscard]] Result<void> survey(const Graph& graph);
  [[nodiscard]] bool is_result(const Graph& graph, ValueId id) const;
  [[nodiscard]] Result<void> survey_casts(ValueId id, DType element, const std::string& tensor_name,
                                          const std::function<Result<TensorNumbers>()>& survey_them);
  void find_casts(ValueId id, std::vector<ValueId>& casts, Seen& seen) const;
  [[nodiscard]] Result<void> judge_attribute(const Node& node, const Attribute& numbers);
  [[nodiscard]] Result<void> survey_arguments(const Graph& graph, const Node& node);
  void find_arguments(const Graph& graph, const std::string& name, int depth,
                      std::vector<const Attribute*>& given) const;
  [[nodiscard]] Result<void> survey_weights(const Graph& graph);
  void keep_weight(ValueId id, std::string_view reason);
  [[nodiscard]] std::vector<Use> all_uses(ValueId id) const;
  [[nodiscard]] std::string_view unfit(const Initializer& initializer) const;
  [[nodiscard]] std::optional<Use> weight_use(ValueId id) const;
  [[nodiscard]] Result<void> survey_weight(const Graph& graph, const Initializer& initializer);
  [[nodiscard]] Result<void> judge(ValueId id, const TensorNumbers& found, const std::string& tensor_name);
  [[nodiscard]] Error beyond(const TensorNumbers& found, const std::string& tensor_name) const;
  [[nodiscard]] std::string_view harm_of_small(ValueId id, const TensorNumbers& found) const;
  [[nodiscard]] Role role_of(ValueId id, Seen& seen) const;
  void keep(ValueId id, std::string_view reason, bool is_small);
  void keep_elements(ValueId id, std::string_view reason, bool is_small, Seen& seen);
  void keep_behind(const Node& made_by, bool is_product, Seen& seen);
  [[nodiscard]] Result<std::vector<double>> bounds_of(ValueId id) const;
  [[nodiscard]] Result<void> survey_bounds(const Node& node);
  bool keep_near_one(ValueId id, Seen& seen);
  void keep_uses(ValueId small, bool is_product, Seen& seen);

  const io::InputFile& file_;
  const WeightRecipe* weights_;
  PrecisionPlan& plan_;
  std::vector<std::vector<Use>> uses_;      // by value
  std::vector<std::vector<ValueId>> same_;  // by value: its names in bodies and functions, or around them
  std::unordered_map<const Graph*, std::vector<Call>> calls_;  // by the body of the function
  // Of the whole survey, as a malformed model may ask for more.
  mutable std::size_t steps_left_ = std::size_t{1} << 22;
  mutable std::size_t arguments_left_ = std::size_t{1} << 14;
  std::vector<Finding> findings_;
  std::vector<::tensorcast::onnx::KeptWeight> kept_;
  std::shared_ptr<LastWeight> last_weight_ = std::make_shared<LastWeight>();
};

}  // namespace tensorcast::models::onnx
