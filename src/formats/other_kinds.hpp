// Recognizes files that are often mistaken for tensor files, so that an error can name their kind and a remedy.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::formats {

// Returns the text with its ASCII letters small: names of files are told apart without regard to case.
[[nodiscard]] std::string lower_case(std::string_view text);

// `head` is the beginning of the file at `path`, 512 bytes or the whole file. Returns nullopt for an unknown kind.
[[nodiscard]] std::optional<Error> other_kind(std::string_view path, std::span<const std::byte> head);

}  // namespace tensorcast::formats
