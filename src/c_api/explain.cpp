#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>
// SPDX-License-Identifier: Apache-2.0
#include "c_api/c_call.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/dtype.hpp"
#include "tensorcast/explain.hpp"

namespace {

using namespace tensorcast::c_api;
using tensorcast::CastOptions;
using tensorcast::DType;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Explanation;
using tensorcast::Result;

// The texts are ASCII: a literal that is a number, messages, digits.
void append_string(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      json += "\\u00";
      json += digits[static_cast<unsigned char>(c) >> 4];
      json += digits[static_cast<unsigned char>(c) & 15];
    } else {
      json += c;
    }
  }
  json += '"';
}

void append_member(std::string& json, std::string_view key, std::string_view text) {
  if (json.back() != '{') json += ',';
  append_string(json, key);
  json += ':';
  append_string(json, text);
}

// JSON has no infinity and no NaN.
void append_number(std::string& json, std::string_view key, double number) {
  json += ',';
  append_string(json, key);
  json += ':';
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  json += std::isfinite(number) ? std::string_view(digits, static_cast<std::size_t>(end - digits)) : "null";
}

// "0x1D": as many digits as the type's codes have.
std::string code_text(const Explanation& explanation) {
  std::string text = "0x";
  for (int digit = (tensorcast::bit_width(explanation.dtype) + 3) / 4 - 1; digit >= 0; --digit) {
    text += "0123456789ABCDEF"[(explanation.code >> (4 * digit)) & 15];
  }
  return text;
}

void append_explanation(std::string& json, const Explanation& explanation) {
  json += '{';
  append_member(json, "dtype", tensorcast::name(explanation.dtype));
  if (!explanation.error.empty()) {
    append_member(json, "error", explanation.error);
    json += '}';
    return;
  }
  if (explanation.dtype != DType::string) {
    append_member(json, "code", code_text(explanation));
    append_member(json, "sign_bits", explanation.sign_bits);
    append_member(json, "exponent_bits", explanation.exponent_bits);
    append_member(json, "mantissa_bits", explanation.mantissa_bits);
  }
  append_member(json, "exact_value", explanation.exact_value);
  append_member(json, "shortest_value", explanation.shortest_value);
  append_member(json, "exact_error", explanation.exact_error);
  append_number(json, "relative_error", explanation.relative_error);
  json += ",\"events\":[";
  for (std::size_t i = 0; i < explanation.events.size(); ++i) {
    if (i > 0) json += ',';
    append_string(json, explanation.events[i]);
  }
  json += "]}";
}

Result<std::string> explanations(std::string_view literal, DType from, DType to, const CastOptions& options) {
  const std::size_t first = literal.find_first_not_of(' ');
  std::string json = "[{";
  append_member(json, "value", first == std::string_view::npos ? literal : literal.substr(first));
  if (from != DType::undefined) {
    CastOptions unscaled = options;
    unscaled.scale = 1.0;
    const Result<Explanation> source = tensorcast::explain(literal, from, from, unscaled);
    if (!source) return source.error();
    json += ",\"source\":";
    append_explanation(json, *source);
  }
  json += ",\"results\":[";
  const auto all = tensorcast::all_dtypes();
  const std::vector<DType> targets =
      to == DType::undefined ? std::vector<DType>(all.begin(), all.end()) : std::vector<DType>{to};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Result<Explanation> target = tensorcast::explain(literal, from, targets[i], options);
    if (!target) return target.error();
    if (i > 0) json += ',';
    append_explanation(json, *target);
  }
  return json += "]}]";
}

}  // namespace

extern "C" tc_status tc_explain(const char* literal, tc_dtype from, tc_dtype to, const tc_cast_options* options,
                                char** json) {
  return run([&]() -> Result<void> {
    if (literal == nullptr || json == nullptr) return invalid("the literal or the result pointer is null");
    const Result<tc_cast_options> read = read_options(options);
    if (!read) return read.error();
    const Result<std::string> text =
        explanations(literal, static_cast<DType>(from), static_cast<DType>(to), options_of(*read));
    if (!text) return text.error();
    auto* const block = static_cast<char*>(std::malloc(text->size() + 1));
    if (block == nullptr) return Error{.code = ErrorCode::internal, .message = "out of memory"};
    std::memcpy(block, text->c_str(), text->size() + 1);
    *json = block;
    return {};
  });
}
