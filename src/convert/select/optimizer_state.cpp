// SPDX-License-Identifier: Apache-2.0
#include "convert/select/optimizer_state.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tensorcast::file_conversion {
namespace {

// What PyTorch's optimizers keep for each parameter.
constexpr auto moments = std::to_array<std::string_view>(
    {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg", "acc_delta", "grad_avg"});
constexpr std::string_view optimizer = "optimizer";

}  // namespace

bool is_optimizer_state(const formats::TensorInfo& tensor) {
  std::string_view rest = tensor.name;
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    if (part == "optim" || part == "optim_state_dict" || part == optimizer || part == "optimizers") return true;
    if (part.starts_with(optimizer) && part.size() > optimizer.size() && part[optimizer.size()] == '_') return true;
    if (std::ranges::find(moments, part) != moments.end()) return true;
    if (dot == std::string_view::npos) return part == "step" && tensor.count == 1;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace tensorcast::file_conversion
