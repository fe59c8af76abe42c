// SPDX-License-Identifier: Apache-2.0
// What a request asks for each tensor, by its patterns, rules and conditions.
#pragma once

#include <optional>
#include <string>

#include "convert/select/pattern_list.hpp"
#include "convert/select/reason.hpp"
#include "formats/format.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

struct Decision {
  DType to = DType::undefined;  // undefined: copied, unless there is a scheme
  std::string scheme = {};      // quantized to it; "": it is not
  std::string recipe = {};      // of `scheme`; "": that of the request
  bool by_budget = false;       // quantized to the scheme that the budget's choice gives it
  Reason reason = {};
  bool included = true;
  bool left = false;  // a conversion was requested and is not done
  double scale = 1.0;

  [[nodiscard]] bool quantizes() const noexcept { return !scheme.empty() || by_budget; }
  [[nodiscard]] bool changes() const noexcept { return to != DType::undefined || quantizes(); }
};

// Reports whether a tensor is an optimizer's: its name has a part named "optimizer" (also "optimizer_state_dict" and
// the like) or "optim", it is a moment such as "exp_avg" or "exp_avg_sq", or one number named "step".
[[nodiscard]] bool is_optimizer_state(const formats::TensorInfo& tensor);
// Whether a request names a type, a scheme or a budget.
[[nodiscard]] bool has_target(const TensorTargets& targets);
// Whether weights may be quantized: the request, or a rule, names a scheme.
[[nodiscard]] bool quantizes(const TensorTargets& targets);

// The request's patterns, compiled.
class Selection {
 public:
  // Both outlive this. Errors: invalid_argument (patterns and rules that are wrong).
  [[nodiscard]] static Result<Selection> compile(const ConvertRequest& request, const formats::Format& input);

  // As the functions above, of the request.
  [[nodiscard]] bool has_target() const { return file_conversion::has_target(*request_); }
  [[nodiscard]] bool quantizes() const { return file_conversion::quantizes(*request_); }
  // The array of a format without names is converted whatever its type. Errors: unsupported (a rule for a tensor that
  // cannot be converted).
  [[nodiscard]] Result<Decision> decide(const formats::TensorInfo& tensor, bool optimizer_state);
  [[nodiscard]] bool excludes(const std::string& name) { return exclude_.matches(name); }
  // Errors: invalid_argument, naming a pattern that has matched nothing so far.
  [[nodiscard]] Result<void> check_all_matched() const;

 private:
  Selection(const ConvertRequest& request, const formats::Format& input) : request_(&request), input_(&input) {}
  std::size_t first_rule(const formats::TensorInfo& tensor);
  [[nodiscard]] Result<Decision> by_rule(std::size_t rule, const formats::TensorInfo& tensor) const;
  [[nodiscard]] std::optional<Reason> reason_to_keep(const formats::TensorInfo& tensor) const;

  const ConvertRequest* request_;
  const formats::Format* input_;
  PatternList rules_;
  PatternList include_;
  PatternList exclude_;
};

}  // namespace tensorcast::file_conversion
