// Files that people take for tensor files: recognized, so that an error can say what they are and what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::formats {

// `head` is the beginning of the file at `path`, 64 bytes or the whole file. Nothing: a kind that is not known here.
[[nodiscard]] std::optional<Error> other_kind(std::string_view path, std::span<const std::byte> head);

}  // namespace tensorcast::formats
