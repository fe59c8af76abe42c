// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "c_api/c_call.hpp"
#include "c_api/json_writer.hpp"
#include "dtype/try.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/dtype.hpp"
#include "tensorcast/explain.hpp"

namespace {

using namespace tensorcast::c_api;
using tensorcast::CastOptions;
using tensorcast::DType;
using tensorcast::Explanation;
using tensorcast::Result;

// "0x1D": as many digits as the type's codes have.
std::string code_text(const Explanation& explanation) {
  std::string text = "0x";
  for (int digit = (tensorcast::bit_width(explanation.dtype) + 3) / 4 - 1; digit >= 0; --digit) {
    text += "0123456789ABCDEF"[(explanation.code >> (4 * digit)) & 15];
  }
  return text;
}

void append_explanation(JsonWriter& json, const Explanation& explanation) {
  json.open('{');
  json.member("dtype", tensorcast::name(explanation.dtype));
  if (!explanation.error.empty()) {
    json.member("error", std::string_view(explanation.error));
    json.close('}');
    return;
  }
  if (explanation.dtype != DType::string) {
    json.member("code", std::string_view(code_text(explanation)));
    json.member("sign_bits", std::string_view(explanation.sign_bits));
    json.member("exponent_bits", std::string_view(explanation.exponent_bits));
    json.member("mantissa_bits", std::string_view(explanation.mantissa_bits));
  }
  json.member("exact_value", std::string_view(explanation.exact_value));
  json.member("shortest_value", std::string_view(explanation.shortest_value));
  json.member("exact_error", std::string_view(explanation.exact_error));
  // Infinity and NaN are at no distance from a number: null.
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  json.member("relative_error", explanation.exact_error.empty() ? none : explanation.relative_error);
  json.key("events");
  json.open('[');
  for (const std::string& event : explanation.events) json.next(), json.string(event);
  json.close(']');
  json.close('}');
}

Result<JsonWriter> explanations(std::string_view literal, DType from, DType to, const CastOptions& options) {
  const std::size_t first = literal.find_first_not_of(' ');
  JsonWriter json;
  json.open('[');
  json.open('{');
  json.member("value", first == std::string_view::npos ? literal : literal.substr(first));
  if (from != DType::undefined) {
    CastOptions unscaled = options;
    unscaled.scale = 1.0;
    unscaled.rounding = tensorcast::Rounding::automatic;
    unscaled.seed = 0;
    unscaled.inexact = tensorcast::Inexact::automatic;
    const Explanation source = TRY(tensorcast::explain(literal, from, from, unscaled));
    json.key("source");
    append_explanation(json, source);
  }
  json.key("results");
  json.open('[');
  const auto all = tensorcast::all_dtypes();
  const std::vector<DType> targets =
      to == DType::undefined ? std::vector<DType>(all.begin(), all.end()) : std::vector<DType>{to};
  for (const DType target : targets) {
    const Explanation result = TRY(tensorcast::explain(literal, from, target, options));
    json.next();
    append_explanation(json, result);
  }
  json.close(']');
  json.close('}');
  json.close(']');
  return json;
}

}  // namespace

extern "C" tc_status tc_explain(const char* literal, tc_dtype from, tc_dtype to, const tc_cast_options* options,
                                char** json) {
  return run([&]() -> Result<void> {
    if (literal == nullptr || json == nullptr) return invalid("the literal or the result pointer is null");
    const tc_cast_options read = TRY(read_options(options));
    const Result<JsonWriter> text =
        explanations(literal, static_cast<DType>(from), static_cast<DType>(to), options_of(read));
    if (!text) return text.error();
    return text->hand_over(json);
  });
}
