// SPDX-License-Identifier: Apache-2.0
// Why a tensor has its type in the output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

struct Reason {
  TypeReason why = TypeReason::to;
  std::uint64_t number = 0;  // as TensorOutcome::number
  std::string detail = {};   // what no number says, such as "integer", the tensor's own type or its kind

  bool operator==(const Reason&) const = default;
  // The reason in a few words, as TensorOutcome::reason.
  [[nodiscard]] std::string text() const;
};

// The reason whose name() is this; nullopt if there is none.
[[nodiscard]] std::optional<TypeReason> parse_reason(std::string_view name) noexcept;

}  // namespace tensorcast::file_conversion
