// SPDX-License-Identifier: Apache-2.0
// Converts arbitrary bytes as a file of any format.
#include "whole_conversion.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tensorcast::fuzzing::Folder folder;
  tensorcast::fuzzing::convert_and_verify(folder, data, size);
  return 0;
}
