// SPDX-License-Identifier: Apache-2.0
#include "cast_options.hpp"

#include <limits>
#include <stdexcept>

#include "operations.hpp"
#include "options/option_text.hpp"

namespace tensorcast::openvino {
namespace {

std::int32_t position(const char* name, const std::string& word, const options::Words& words) {
  const int found = words.find(word);
  if (found >= 0) return found;
  throw std::runtime_error("tensorcast: " + std::string(name) + " is \"" + word +
                           "\", and must be one of: " + options::word_list(words));
}

std::int32_t number(const char* name, std::int64_t value) {
  if (value >= 0 && value <= std::numeric_limits<std::int32_t>::max()) return static_cast<std::int32_t>(value);
  throw std::runtime_error("tensorcast: " + std::string(name) + " is " + std::to_string(value));
}

}  // namespace

CastOptions::CastOptions() {
  for_each(values_, [](const auto& option, auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      value = option.word(option.usual());
    } else {
      value = static_cast<std::decay_t<decltype(value)>>(option.usual());
    }
  });
}

void CastOptions::visit(ov::AttributeVisitor& visitor) {
  for_each(values_, [&](const auto& option, auto& value) { visitor.on_attribute(option.name, value); });
  visitor.on_attribute("threads", threads_);
}

tc_cast_options CastOptions::checked() const {
  tc_cast_options options = {};
  functions().cast_options_init(&options, sizeof(options));
  options.threads = number("threads", threads_);
  for_each(values_, [&](const auto& option, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    auto& result = options.*option.c_member;
    if constexpr (std::is_same_v<Value, std::string>) {
      result = position(option.name, value, option.words);
    } else if constexpr (std::is_same_v<std::decay_t<decltype(result)>, std::uint64_t>) {
      result = static_cast<std::uint64_t>(value);
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      result = number(option.name, value);
    } else {
      result = value;
    }
  });
  return options;
}

}  // namespace tensorcast::openvino
