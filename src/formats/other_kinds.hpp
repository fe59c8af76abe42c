// SPDX-License-Identifier: Apache-2.0
// Recognizes files that are often mistaken for tensor files, so that an error can name their kind and a remedy.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::formats {

// `head` is the beginning of the file at `path`, 512 bytes or the whole file. Returns nullopt for an unknown kind.
[[nodiscard]] std::optional<Error> other_kind(std::string_view path, std::span<const std::byte> head);

}  // namespace tensorcast::formats
