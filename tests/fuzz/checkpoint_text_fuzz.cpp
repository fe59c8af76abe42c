// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an index, a config.json, a plan.json, the record of an output or a statement.
#include "checkpoint_texts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tensorcast::checkpoint::fuzzing::read_text(data, size);
  return 0;
}
