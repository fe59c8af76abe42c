// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as a TensorProto.
#include "formats/format_fuzzing.hpp"
#include "formats/format_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tensorcast::formats::fuzzing::read_everything(tensorcast::formats::tensor_proto_format, data, size);
}
