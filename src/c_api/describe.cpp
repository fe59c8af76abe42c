// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "c_api/c_call.hpp"
#include "c_api/json_writer.hpp"
#include "options/cast_options.hpp"
#include "options/cast_report.hpp"
#include "options/option_text.hpp"
#include "options/promote_options.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/dtype.hpp"

namespace {

using namespace tensorcast::c_api;
using tensorcast::BlockFormat;
using tensorcast::DType;
using tensorcast::DTypeFacts;
using tensorcast::Family;
using tensorcast::Result;

std::string_view family_name(Family family) {
  constexpr std::string_view names[] = {"bool", "integer", "float", "text"};
  return names[static_cast<std::size_t>(family)];
}

// The limits of integers of 64 bits have more digits than a double.
void append_limits(JsonWriter& json, const DTypeFacts& facts) {
  if (facts.family == Family::text) return;
  json.key("lowest");
  if (facts.family != Family::integer) {
    json.number(facts.lowest);
    json.member("largest", facts.largest);
    return;
  }
  json.integer(facts.lowest < 0 ? std::numeric_limits<std::int64_t>::min() >> (64 - facts.bits) : 0);
  json.key("largest");
  const std::uint64_t largest = ~std::uint64_t{0} >> (64 - facts.bits + (facts.lowest < 0 ? 1 : 0));
  json.unsigned_integer(largest);
}

void append_type(JsonWriter& json, const DTypeFacts& facts) {
  json.open('{');
  json.member("name", facts.name);
  json.member("number", static_cast<int>(facts.dtype));
  json.member("onnx_number", is_onnx(facts.dtype) ? static_cast<int>(facts.dtype) : 0);  // 0: undefined
  json.member("family", family_name(facts.family));
  json.member("bits", facts.bits);
  json.member("since_opset", facts.since_opset);
  if (facts.family == Family::floating) {
    json.member("exponent_bits", facts.exponent_bits);
    json.member("mantissa_bits", facts.mantissa_bits);
    json.member("bias", facts.bias);
    json.member("has_infinity", facts.has_infinity);
    json.member("has_nan", facts.has_nan);
    json.member("smallest_positive", facts.smallest_positive);
  }
  append_limits(json, facts);
  json.member("special_codes", facts.special_codes);
  json.key("spellings");
  json.open('[');
  for (const std::string_view spelling : facts.spellings) json.next(), json.string(spelling);
  json.close(']');
  json.close('}');
}

// Where a field of a struct is, for languages that fill it by name.
template <class Struct, class Field>
int offset_of(Field Struct::*field) {
  const Struct any = {};
  return static_cast<int>(reinterpret_cast<const char*>(&(any.*field)) - reinterpret_cast<const char*>(&any));
}

template <class Struct, class Field>
void append_field(JsonWriter& json, const char* name, Field Struct::*field) {
  json.member("name", name);
  json.member("offset", offset_of(field));
  json.member("bytes", static_cast<int>(sizeof(Field)));
}

void append_words(JsonWriter& json, const tensorcast::options::Words& words) {
  json.key("words");
  json.open('[');
  for (const char* word : words) json.next(), json.string(word);
  json.close(']');
}

template <class Option>
void append_default(JsonWriter& json, const Option& option) {
  using Value = typename Option::Type;
  const Value usual = option.usual();
  json.key("default");
  if constexpr (Option::is_choice || std::is_same_v<Value, DType>) {
    json.integer(static_cast<int>(usual));
  } else if constexpr (std::is_same_v<Value, bool>) {
    json.boolean(usual);
  } else {
    json.number(static_cast<double>(usual));
  }
}

template <class Option>
constexpr std::string_view kind_of() {
  using Value = typename Option::Type;
  if (std::is_same_v<Value, DType>) return "type";
  if (Option::is_choice) return "choice";
  if (std::is_same_v<Value, bool>) return "boolean";
  return std::is_integral_v<Value> ? "integer" : "number";
}

template <class Struct, class List>
void append_options(JsonWriter& json, std::string_view name, const List& list) {
  json.key(name);
  json.open('{');
  json.member("bytes", static_cast<int>(sizeof(Struct)));
  json.key("options");
  json.open('[');
  tensorcast::options::for_each(list, [&](const auto& option) {
    json.next();
    json.open('{');
    append_field(json, option.name, option.c_member);
    json.member("kind", kind_of<std::remove_cvref_t<decltype(option)>>());
    append_default(json, option);
    if (option.words.size() != 0) append_words(json, option.words);
    if (option.zero_means != 0) json.member("zero_means", option.zero_means);
    json.member("since_opset", option.since_opset);
    if constexpr (std::is_same_v<typename std::remove_cvref_t<decltype(option)>::Type, DType>) {
      json.member("help", option.help);
    } else {
      json.member("help", std::string_view(tensorcast::options::help_text(option)));
    }
    json.close('}');
  });
  json.close(']');
  json.close('}');
}

void append_report(JsonWriter& json) {
  json.key("report");
  json.open('{');
  json.member("bytes", static_cast<int>(sizeof(tc_cast_report)));
  json.key("numbers");
  json.open('[');
  const auto append = [&](const char* name, auto field, const char* help) {
    json.next();
    json.open('{');
    append_field(json, name, field);
    json.member("kind", std::is_same_v<decltype(field), double tc_cast_report::*> ? "number" : "integer");
    json.member("help", help);
    json.close('}');
  };
  tensorcast::options::for_each(tensorcast::options::cast_report,
                                [&](const auto& number) { append(number.name, number.c_member, number.help); });
  append("snr_db", &tc_cast_report::snr_db, "Signal power over noise power in dB.");
  json.close(']');
  json.close('}');
}

void append_block_format(JsonWriter& json, const BlockFormat& format) {
  const tensorcast::BlockCoding& coding = format.coding;
  json.open('{');
  json.member("scheme", format.scheme);
  json.member("spelling", format.spelling);
  json.member("element", coding.element == DType::undefined ? "" : tensorcast::name(coding.element));
  json.member("bits", coding.bits);
  json.member("scale", coding.scale == DType::undefined ? "" : tensorcast::name(coding.scale));
  const tensorcast::GgufBlockSize gguf = tensorcast::block_size(coding.gguf);
  json.member("block_rows", static_cast<int>(format.block_rows));
  json.member("block_columns", static_cast<int>(gguf.elements == 0 ? format.block_columns : gguf.elements));
  json.member("block_bytes", static_cast<int>(gguf.bytes));
  json.member("order", format.order);
  json.close('}');
}

JsonWriter description() {
  JsonWriter json;
  json.open('{');
  json.member("version", tensorcast::version());
  json.key("types");
  json.open('[');
  for (const DType dtype : tensorcast::all_dtypes()) json.next(), append_type(json, tensorcast::facts(dtype));
  json.close(']');
  append_options<tc_cast_options>(json, "cast_options", tensorcast::options::cast_options);
  append_options<tc_promote_options>(json, "promote_options", tensorcast::options::promote_options);
  append_report(json);
  json.key("block_formats");
  json.open('[');
  for (const BlockFormat& format : tensorcast::block_formats()) json.next(), append_block_format(json, format);
  json.close(']');
  json.close('}');
  return json;
}

}  // namespace

extern "C" tc_status tc_describe(char** json) {
  return run([&]() -> Result<void> {
    if (json == nullptr) return invalid("the result pointer is null");
    return description().hand_over(json);
  });
}
