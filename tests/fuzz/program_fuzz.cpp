// SPDX-License-Identifier: Apache-2.0
// Runs arbitrary bytes as a model of any format.
#include "whole_run.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tensorcast::fuzzing::Folder folder;
  tensorcast::fuzzing::load_and_run(folder, data, size);
  return 0;
}
