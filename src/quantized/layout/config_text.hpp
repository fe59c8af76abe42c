// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorcast::quantized {

// A longer file is not read as a configuration.
inline constexpr std::uint64_t max_config_bytes = std::uint64_t{64} << 20;

// The name of what the user says beside the files: words that are taken as harmless, one a line.
inline constexpr std::string_view accepted_words = "`accept`";

// The name of a text that is made of torchao's metadata: an object of the descriptions of tensors, by their names. Each
// is a string, so that one that is no JSON spoils no other.
inline constexpr std::string_view torchao_text = "torchao's metadata";

// What messages call the metadata of the tensors' file.
inline constexpr std::string_view metadata_source = "the file's metadata";

// A file that may describe the quantization, or an entry of metadata with its key as the name.
struct ConfigText {
  std::string name;  // without its folder
  std::string text;
};

}  // namespace tensorcast::quantized
