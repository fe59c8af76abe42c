// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tensorcast::quantized {

// A file that may describe the quantization, or an entry of metadata with its key as the name.
struct ConfigText {
  std::string name;  // without its folder
  std::string text;
};

}  // namespace tensorcast::quantized
