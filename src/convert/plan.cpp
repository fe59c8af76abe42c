#include "convert/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "convert/name_pattern.hpp"
#include "dtype/dtype_table.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::convert {
namespace {

using formats::Format;
using formats::TensorInfo;

struct Decision {
  DType to = DType::undefined;  // undefined: leave alone
  std::string reason;
};

// The request's patterns, compiled.
class Selection {
 public:
  static Result<Selection> compile(const ConvertRequest& request) {
    Selection selection;
    for (const ConvertRule& rule : request.rules) {
      if (!is_castable(rule.to)) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message = fmt::format("the rule for \"{}\" names no type to convert to", rule.pattern)};
      }
      if (auto added = add(selection.rules_, rule.pattern); !added) return std::move(added).error();
    }
    for (const std::string& pattern : request.include) {
      if (auto added = add(selection.include_, pattern); !added) return std::move(added).error();
    }
    for (const std::string& pattern : request.exclude) {
      if (auto added = add(selection.exclude_, pattern); !added) return std::move(added).error();
    }
    selection.rule_matched_.resize(selection.rules_.size());
    return selection;
  }

  // `only_array`: the input has one unnamed array, so the request means that one whatever its type.
  Result<Decision> decide(const ConvertRequest& request, const TensorInfo& tensor, bool only_array) {
    std::size_t first_rule = rules_.size();
    for (std::size_t i = rules_.size(); i-- > 0;) {
      if (!rules_[i].matches(tensor.name)) continue;
      rule_matched_[i] = true;
      first_rule = i;
    }
    if (matches_any(exclude_, tensor.name)) return Decision{.reason = "excluded"};
    if (!include_.empty() && !matches_any(include_, tensor.name)) return Decision{.reason = "not included"};
    if (first_rule < rules_.size()) {
      if (tensor.dtype == DType::undefined) return cannot_convert(tensor);
      return Decision{.to = request.rules[first_rule].to, .reason = fmt::format("rule {}", first_rule + 1)};
    }
    if (tensor.dtype == DType::undefined) return Decision{.reason = tensor.foreign_dtype};
    if (request.to == DType::undefined) return Decision{.reason = "no rule"};
    switch (only_array ? Family::floating : family(tensor.dtype)) {
      case Family::boolean:
        return Decision{.reason = "bool"};
      case Family::integer:
        return Decision{.reason = "integer"};
      case Family::text:
        return Decision{.reason = "string"};
      case Family::floating:
        break;
    }
    return Decision{.to = request.to, .reason = "--to"};
  }

  Result<void> check_all_rules_matched(const ConvertRequest& request) const {
    for (std::size_t i = 0; i < rule_matched_.size(); ++i) {
      if (rule_matched_[i]) continue;
      return Error{.code = ErrorCode::invalid_argument,
                   .message = fmt::format("rule {} (\"{}\") matches no tensor", i + 1, request.rules[i].pattern),
                   .hint = "`tcast inspect` lists the names"};
    }
    return {};
  }

 private:
  static Result<void> add(std::vector<NamePattern>& patterns, const std::string& text) {
    Result<NamePattern> pattern = NamePattern::compile(text);
    if (!pattern) return std::move(pattern).error();
    patterns.push_back(std::move(pattern).value());
    return {};
  }

  static bool matches_any(const std::vector<NamePattern>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) { return pattern.matches(name); });
  }

  static Error cannot_convert(const TensorInfo& tensor) {
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("{} cannot be converted, only copied", tensor.foreign_dtype),
                 .hint = "exclude the tensor",
                 .tensor = tensor.name};
  }

  std::vector<NamePattern> rules_;
  std::vector<NamePattern> include_;
  std::vector<NamePattern> exclude_;
  std::vector<bool> rule_matched_;
};

std::string formats_holding(DType dtype) {
  const std::vector<std::string_view> names = file_formats_for(dtype);
  return names.empty() ? "no format can" : fmt::format("{} can", fmt::join(names, ", "));
}

// The options fit the pair of types: what a conversion of no elements checks.
Result<void> check_pair(DType from, DType to, const CastOptions& options) {
  const std::int64_t none[] = {0};
  const std::int64_t no_offsets[] = {0};
  if (from == DType::string && to == DType::string) return {};
  if (from == DType::string) return cast_from_strings({.data = {}, .offsets = no_offsets}, {to, none, {}}, options);
  if (to == DType::string) {
    Result<StringBuffer> strings = cast_to_strings({from, none, {}}, options);
    return strings ? Result<void>() : std::move(strings).error();
  }
  return cast({from, none, {}}, {to, none, {}}, options);
}

Result<void> check_holds(const Format& output, const Format& input, const TensorInfo& tensor) {
  if (!tensor.foreign_dtype.empty()) {
    if (&input == &output) return {};
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("{} cannot hold {}", output.name, tensor.foreign_dtype),
                 .hint = fmt::format("only {} can", input.name),
                 .tensor = tensor.name};
  }
  if (output.can_hold(tensor.dtype)) return {};
  return Error{.code = ErrorCode::unsupported,
               .message = fmt::format("{} cannot hold {}", output.name, name(tensor.dtype)),
               .hint = formats_holding(tensor.dtype),
               .tensor = tensor.name};
}

// An unnamed array gets the name of its file.
std::string name_from_path(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, std::max<std::size_t>(file.find('.', 1), 1));
}

Result<void> check_count(const Format& output, std::size_t tensors) {
  if (output.many_tensors || tensors == 1) return {};
  std::vector<std::string_view> names;
  for (const Format* format : formats::all_formats()) {
    if (format->many_tensors) names.push_back(format->name);
  }
  return Error{.code = ErrorCode::unsupported,
               .message = fmt::format("{} holds exactly one array, and the input has {}", output.name, tensors),
               .hint = fmt::format("{} can", fmt::join(names, ", "))};
}

Result<PlannedTensor> plan_tensor(const TensorInfo& source, Decision decision, const CastOptions& options) {
  PlannedTensor planned{
      .target = source,
      .from = source.dtype,
      .bytes_in = source.bytes,
      .converts = decision.to != DType::undefined && (decision.to != source.dtype || options.scale != 1.0),
      .reason = std::move(decision.reason)};
  if (!planned.converts) return planned;
  planned.target.dtype = decision.to;
  planned.target.bytes = decision.to == DType::string ? 0 : storage_bytes(decision.to, source.count);
  if (planned.target.bytes == std::numeric_limits<std::size_t>::max()) {
    return Error{.code = ErrorCode::out_of_range,
                 .message = fmt::format("{} elements of {} have more bytes than can be counted", source.count,
                                        name(decision.to)),
                 .tensor = source.name};
  }
  return planned;
}

}  // namespace

std::uint64_t Plan::bytes_in() const noexcept {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors) bytes += tensor.bytes_in;
  return bytes;
}

std::uint64_t Plan::bytes_out() const noexcept {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors) bytes += tensor.target.bytes;
  return bytes;
}

Result<Plan> make_plan(const ConvertRequest& request, const formats::Reader& input, const Format& input_format,
                       const Format& output_format) {
  if (request.to != DType::undefined) {
    if (Result<void> castable = check_castable(request.to); !castable) return std::move(castable).error();
  }
  Result<Selection> selection = Selection::compile(request);
  if (!selection) return std::move(selection).error();
  const std::vector<TensorInfo>& sources = input.tensors();
  if (auto fits = check_count(output_format, sources.size()); !fits) return std::move(fits).error();

  Plan plan;
  std::vector<TensorInfo> targets;
  std::set<std::pair<DType, DType>> checked_pairs;
  for (const TensorInfo& source : sources) {
    Result<Decision> decision = selection->decide(request, source, !input_format.many_tensors);
    if (!decision) return std::move(decision).error();
    Result<PlannedTensor> planned = plan_tensor(source, std::move(decision).value(), request.options);
    if (!planned) return std::move(planned).error();
    TensorInfo& target = planned->target;
    if (planned->converts && checked_pairs.emplace(source.dtype, target.dtype).second) {
      if (Result<void> fits = check_pair(source.dtype, target.dtype, request.options); !fits) {
        fits.error().tensor = source.name;
        return std::move(fits).error();
      }
    }
    if (auto holds = check_holds(output_format, input_format, target); !holds) return std::move(holds).error();
    if (output_format.named_tensors && target.name.empty()) target.name = name_from_path(request.input);
    targets.push_back(target);
    plan.tensors.push_back(std::move(planned).value());
  }
  if (auto matched = selection->check_all_rules_matched(request); !matched) return std::move(matched).error();
  if (output_format.check != nullptr) {
    if (auto fits = output_format.check(targets); !fits) return std::move(fits).error();
  }
  if (output_format.layout != nullptr) {
    plan.layout = output_format.layout(targets);
  } else {
    plan.layout.resize(targets.size());
    std::iota(plan.layout.begin(), plan.layout.end(), std::size_t{0});
  }
  return plan;
}

}  // namespace tensorcast::convert
