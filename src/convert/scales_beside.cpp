#include "convert/scales_beside.hpp"

#include <array>
#include <string_view>

namespace tensorcast::conversion {
namespace {

struct Naming {
  std::string_view weight;  // suffix of a weight's name
  std::string_view scales;  // suffix of its scales' name
};
constexpr std::array<Naming, 8> namings = {{
    {"", "_scale_inv"},  // DeepSeek, Qwen: x.weight, x.weight_scale_inv
    {"", "_scale"},      // compressed-tensors, ModelOpt: x.weight, x.weight_scale
    {"", "_scales"},
    {"", ".scale"},
    {"weight", "scale"},  // DeepSeek's own: x.weight, x.scale
    {"weight", "scales"},
    {"weight", "scale_weight"},  // ComfyUI: x.weight, x.scale_weight
    {"blocks", "scales"},        // gpt-oss: x_blocks, x_scales
}};

}  // namespace

std::optional<std::string> scales_beside(const std::string& weight, const std::unordered_set<std::string>& names) {
  for (const Naming& naming : namings) {
    if (!weight.ends_with(naming.weight)) continue;
    std::string scales = weight.substr(0, weight.size() - naming.weight.size());
    scales += naming.scales;
    if (names.contains(scales)) return scales;
  }
  return std::nullopt;
}

}  // namespace tensorcast::conversion
