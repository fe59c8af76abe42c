// SPDX-License-Identifier: Apache-2.0
#include "attributes.hpp"

#include <string>
#include <type_traits>

#include "options/cast_options.hpp"
#include "options/option_text.hpp"
#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

// Sets `number` to the position of the attribute's text in `words`; leaves it if the node lacks the attribute.
void read_word(const OrtApi& api, const OrtKernelInfo& info, const char* name, const options::Words& words,
               std::int32_t& number) {
  std::size_t size = 0;
  if (!succeeds(api, api.KernelInfoGetAttribute_string(&info, name, nullptr, &size))) return;
  std::string text(size, '\0');
  check(api.KernelInfoGetAttribute_string(&info, name, text.data(), &size));
  text.resize(size == 0 ? 0 : size - 1);  // without the terminator
  const int found = words.find(text);
  if (found < 0) {
    fail(api, ORT_INVALID_GRAPH,
         std::string(name) + " is \"" + text + "\", and must be one of: " + options::word_list(words));
  }
  number = found;
}

void read_number(const OrtApi& api, const OrtKernelInfo& info, const char* name, double& number) {
  float given = 0.0F;
  if (succeeds(api, api.KernelInfoGetAttribute_float(&info, name, &given))) number = given;
}

}  // namespace

std::int64_t int_attribute(const OrtApi& api, const OrtKernelInfo& info, const char* name, std::int64_t otherwise) {
  std::int64_t value = 0;
  return succeeds(api, api.KernelInfoGetAttribute_int64(&info, name, &value)) ? value : otherwise;
}

tc_cast_options read_options(const OrtApi& api, const OrtKernelInfo& info, bool all) {
  tc_cast_options options;
  tc_cast_options_init(&options);
  options::for_each(options::cast_options, [&](const auto& option) {
    if (!all && option.since_opset == 0) return;
    using Value = typename std::decay_t<decltype(option)>::Type;
    auto& value = options.*option.c_member;
    if constexpr (std::is_enum_v<Value>) {
      read_word(api, info, option.name, option.words, value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = int_attribute(api, info, option.name, value) != 0 ? 1 : 0;
    } else if constexpr (std::is_same_v<Value, int>) {
      const std::int64_t given = int_attribute(api, info, option.name, value);
      if (given < 0 || given > 1000) {
        fail(api, ORT_INVALID_GRAPH, std::string(option.name) + " is " + std::to_string(given));
      }
      value = static_cast<std::int32_t>(given);
    } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
      value = static_cast<std::uint64_t>(int_attribute(api, info, option.name, 0));
    } else {
      read_number(api, info, option.name, value);
    }
  });
  return options;
}

}  // namespace tensorcast::onnxruntime
