// Reads what a tensor is to become: a type, or a scheme of blocks.
#include <cctype>
#include <string>
#include <utility>
// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<ConvertTarget> parse_target(std::string_view text) {
  Result<DType> dtype = parse_dtype(text);
  if (dtype) return ConvertTarget{.to = *dtype, .scheme = {}};
  std::string scheme(text);  // ggml writes Q4_K
  for (char& c : scheme) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (find_quantize_recipe(scheme) != nullptr)
    return ConvertTarget{.to = DType::undefined, .scheme = std::move(scheme)};
  Error error = std::move(dtype).error();
  std::string alike;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    if (&row != find_quantize_recipe(row.scheme) || !row.scheme.starts_with(scheme.substr(0, 2))) continue;
    alike += (alike.empty() ? "" : ", ") + std::string(row.scheme);
  }
  if (!alike.empty()) error.hint += (error.hint.empty() ? "schemes: " : "; schemes: ") + alike;
  return error;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
