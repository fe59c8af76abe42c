#include "attributes.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

// Sets `option` to the position of the attribute's text in `values`; leaves it if the node lacks the attribute.
void read_word(const OrtApi& api, const OrtKernelInfo& info, const char* name,
               std::initializer_list<std::string_view> values, std::int32_t& option) {
  std::size_t size = 0;
  if (!succeeds(api, api.KernelInfoGetAttribute_string(&info, name, nullptr, &size))) return;
  std::string text(size, '\0');
  check(api.KernelInfoGetAttribute_string(&info, name, text.data(), &size));
  text.resize(size == 0 ? 0 : size - 1);  // without the terminator
  const auto* found = std::find(values.begin(), values.end(), text);
  if (found != values.end()) {
    option = static_cast<std::int32_t>(found - values.begin());
    return;
  }
  std::string list;
  for (const std::string_view value : values) list.append(list.empty() ? "" : ", ").append(value);
  fail(api, ORT_INVALID_GRAPH, std::string(name) + " is \"" + text + "\", and must be one of: " + list);
}

}  // namespace

std::int64_t int_attribute(const OrtApi& api, const OrtKernelInfo& info, const char* name, std::int64_t otherwise) {
  std::int64_t value = 0;
  return succeeds(api, api.KernelInfoGetAttribute_int64(&info, name, &value)) ? value : otherwise;
}

tc_cast_options read_options(const OrtApi& api, const OrtKernelInfo& info, bool all) {
  tc_cast_options options;
  tc_cast_options_init(&options);
  options.saturate = int_attribute(api, info, "saturate", 1) != 0 ? 1 : 0;
  read_word(api, info, "round_mode", {"up", "down", "nearest"}, options.round_mode);
  if (!all) return options;
  const std::int64_t opset = int_attribute(api, info, "opset", 0);
  if (opset < 0 || opset > 1000) fail(api, ORT_INVALID_GRAPH, "opset is " + std::to_string(opset));
  options.opset = static_cast<std::int32_t>(opset);
  read_word(api, info, "out_of_range", {"auto", "wrap", "saturate", "error"}, options.out_of_range);
  read_word(api, info, "int_rounding", {"trunc", "nearest_even"}, options.int_rounding);
  read_word(api, info, "invalid", {"default", "error"}, options.invalid);
  read_word(api, info, "fnuz_inf", {"spec", "flt_max"}, options.fnuz_inf);
  read_word(api, info, "float_string", {"plain", "shortest", "g8"}, options.float_string);
  float scale = 1.0F;
  if (succeeds(api, api.KernelInfoGetAttribute_float(&info, "scale", &scale))) options.scale = scale;
  return options;
}

}  // namespace tensorcast::onnxruntime
