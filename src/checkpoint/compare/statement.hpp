// SPDX-License-Identifier: Apache-2.0
// Statements about conversions as text: in-toto's Statement v1 with a predicate of ours (docs/attestation.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/store/stored_file.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

inline constexpr std::uint64_t max_statement_bytes = std::uint64_t{64} << 20;

struct Statement {
  std::vector<DigestedFile> outputs;
  std::vector<DigestedFile> inputs;
  std::optional<DigestedFile> importance = {};
  std::string version = {};               // of tensorcast
  ConvertRequest request = {};            // options that change bytes, and formats
  std::vector<std::string> recipes = {};  // "nvfp4:modelopt"
  std::vector<std::string> layouts = {};
};

[[nodiscard]] std::string statement_text(const Statement& statement);

// Errors: parse: it is not a statement of ours: other types, names that lead out of a folder or occur twice, options
// that this version lacks. `path` is for messages.
[[nodiscard]] Result<Statement> parse_statement(const std::string& text, const std::string& path);

}  // namespace tensorcast::checkpoint
