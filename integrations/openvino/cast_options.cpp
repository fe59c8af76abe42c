#include "cast_options.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "operations.hpp"

namespace tensorcast::openvino {
namespace {

std::int32_t position(const char* name, const std::string& word, std::initializer_list<std::string_view> values) {
  const auto* found = std::find(values.begin(), values.end(), word);
  if (found != values.end()) return static_cast<std::int32_t>(found - values.begin());
  std::string list;
  for (const std::string_view value : values) list.append(list.empty() ? "" : ", ").append(value);
  throw std::runtime_error("tensorcast: " + std::string(name) + " is \"" + word + "\", and must be one of: " + list);
}

std::int32_t number(const char* name, std::int64_t value) {
  if (value >= 0 && value <= std::numeric_limits<std::int32_t>::max()) return static_cast<std::int32_t>(value);
  throw std::runtime_error("tensorcast: " + std::string(name) + " is " + std::to_string(value));
}

}  // namespace

void CastOptions::visit(ov::AttributeVisitor& visitor) {
  visitor.on_attribute("opset", opset);
  visitor.on_attribute("saturate", saturate);
  visitor.on_attribute("round_mode", round_mode);
  visitor.on_attribute("out_of_range", out_of_range);
  visitor.on_attribute("int_rounding", int_rounding);
  visitor.on_attribute("invalid", invalid);
  visitor.on_attribute("fnuz_inf", fnuz_inf);
  visitor.on_attribute("threads", threads);
  visitor.on_attribute("scale", scale);
}

tc_cast_options CastOptions::checked() const {
  tc_cast_options options = {};
  functions().cast_options_init(&options, sizeof(options));
  options.opset = number("opset", opset);
  options.saturate = saturate ? 1 : 0;
  options.round_mode = position("round_mode", round_mode, {"up", "down", "nearest"});
  options.out_of_range = position("out_of_range", out_of_range, {"auto", "wrap", "saturate", "error"});
  options.int_rounding = position("int_rounding", int_rounding, {"trunc", "nearest_even"});
  options.invalid = position("invalid", invalid, {"default", "error"});
  options.fnuz_inf = position("fnuz_inf", fnuz_inf, {"spec", "flt_max"});
  options.threads = number("threads", threads);
  options.scale = scale;
  return options;
}

}  // namespace tensorcast::openvino
