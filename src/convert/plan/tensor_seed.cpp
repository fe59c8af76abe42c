// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/tensor_seed.hpp"

#include <cstdint>
#include <string>

#include "dtype/text_parts.hpp"
#include "io/sha256.hpp"

namespace tensorcast::file_conversion {

CastOptions with_seed_of(const CastOptions& options, std::string_view tensor) {
  CastOptions named = options;
  if (options.rounding != Rounding::stochastic) return named;
  const std::string digest = io::sha256_of(tensor);
  named.seed ^= parse_whole<std::uint64_t>(std::string_view(digest).substr(0, 16), 16).value_or(0);
  return named;
}

}  // namespace tensorcast::file_conversion
