// SPDX-License-Identifier: Apache-2.0
#include "attributes.hpp"

#include <algorithm>
#include <string>
#include <type_traits>

#include "options/cast_options.hpp"
#include "options/option_text.hpp"
#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

// The value of an attribute, of the kind that the node gives it.
struct Given {
  const char* kind = nullptr;  // null: the node lacks the attribute
  std::int64_t integer = 0;
  float real = 0;
  std::string text;
};

constexpr const char* integer_kind = "an integer";
constexpr const char* real_kind = "a float";
constexpr const char* text_kind = "a string";

std::string read_text(const OrtApi& api, const OrtKernelInfo& info, const char* name, std::size_t size) {
  std::string text(size, '\0');
  check(api.KernelInfoGetAttribute_string(&info, name, text.data(), &size));
  text.resize(size == 0 ? 0 : size - 1);  // without the terminator
  return text;
}

bool has_tensor(const OrtApi& api, const OrtKernelInfo& info, const char* name) {
  OrtAllocator* allocator = nullptr;  // the runtime's
  check(api.GetAllocatorWithDefaultOptions(&allocator));
  OrtValue* value = nullptr;
  if (!succeeds(api, api.KernelInfoGetAttribute_tensor(&info, name, allocator, &value))) return false;
  api.ReleaseValue(value);
  return true;
}

// The runtime answers a question for the wrong kind as one for an attribute that is not there, so each kind is asked.
Given given(const OrtApi& api, const OrtKernelInfo& info, const char* name) {
  Given found;
  std::size_t size = 0;
  if (succeeds(api, api.KernelInfoGetAttribute_int64(&info, name, &found.integer))) {
    found.kind = integer_kind;
  } else if (succeeds(api, api.KernelInfoGetAttribute_float(&info, name, &found.real))) {
    found.kind = real_kind;
  } else if (succeeds(api, api.KernelInfoGetAttribute_string(&info, name, nullptr, &size))) {
    found.kind = text_kind;
    found.text = read_text(api, info, name, size);
  } else if (has_tensor(api, info, name)) {
    found.kind = "a tensor";
  } else if (succeeds(api, api.KernelInfoGetAttributeArray_int64(&info, name, nullptr, &size)) ||
             succeeds(api, api.KernelInfoGetAttributeArray_float(&info, name, nullptr, &size))) {
    found.kind = "a list";
  }
  return found;
}

[[noreturn]] void refuse_kind(const OrtApi& api, const char* name, const char* wanted, const Given& found) {
  fail(api, ORT_INVALID_GRAPH, std::string(name) + " must be " + wanted + ", and is " + found.kind);
}

std::int32_t word_number(const OrtApi& api, const char* name, const options::Words& words, const std::string& text) {
  const auto* found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    fail(api, ORT_INVALID_GRAPH,
         std::string(name) + " is \"" + text + "\", and must be one of: " + options::word_list(words));
  }
  return static_cast<std::int32_t>(found - words.begin());
}

}  // namespace

std::int64_t int_attribute(const OrtApi& api, const OrtKernelInfo& info, const char* name, std::int64_t otherwise) {
  const Given found = given(api, info, name);
  if (found.kind == nullptr) return otherwise;
  if (found.kind != integer_kind) refuse_kind(api, name, integer_kind, found);
  return found.integer;
}

bool has_attribute(std::string_view op, std::string_view name) {
  bool has = name == "to" && op != "CastLike";
  options::for_each(options::cast_options, [&](const auto& option) { has |= name == option.name; });
  return has;
}

tc_cast_options read_options(const OrtApi& api, const OrtKernelInfo& info, bool all) {
  tc_cast_options options;
  tc_cast_options_init(&options);
  options::for_each(options::cast_options, [&](const auto& option) {
    if (!all && option.since_opset == 0) return;
    using Value = typename std::decay_t<decltype(option)>::Type;
    auto& value = options.*option.c_member;
    if constexpr (std::is_enum_v<Value>) {
      const Given found = given(api, info, option.name);
      if (found.kind == nullptr) return;
      if (found.kind != text_kind) refuse_kind(api, option.name, text_kind, found);
      value = word_number(api, option.name, option.words, found.text);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = int_attribute(api, info, option.name, value) != 0 ? 1 : 0;
    } else if constexpr (std::is_same_v<Value, int>) {
      const std::int64_t given = int_attribute(api, info, option.name, value);
      if (given < 0 || given > 1000) {
        fail(api, ORT_INVALID_GRAPH, std::string(option.name) + " is " + std::to_string(given));
      }
      value = static_cast<std::int32_t>(given);
    } else {
      const Given found = given(api, info, option.name);
      if (found.kind == nullptr) return;
      if (found.kind != integer_kind && found.kind != real_kind) refuse_kind(api, option.name, "a number", found);
      value = found.kind == real_kind ? static_cast<double>(found.real) : static_cast<double>(found.integer);
    }
  });
  return options;
}

}  // namespace tensorcast::onnxruntime
