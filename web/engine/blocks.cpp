// SPDX-License-Identifier: Apache-2.0
// Blocks for the page, with fewer fields to fill than tc_block_tensor has.

#include <cstddef>
#include <cstdint>

#include "tensorcast/c_api.h"

// Decodes whole blocks of GGUF: `rows` rows of `columns` numbers each.
extern "C" __attribute__((visibility("default"))) tc_status web_dequantize(const char* scheme, const void* codes,
                                                                           std::size_t bytes, std::size_t rows,
                                                                           std::size_t columns, void* dst,
                                                                           tc_dtype to) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  const std::int64_t codes_shape[] = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(bytes / rows)};
  tc_block_tensor tensor = {};
  tensor.struct_size = sizeof(tensor);
  tensor.scheme = scheme;
  tensor.spelling = "gguf";
  tensor.shape = shape;
  tensor.rank = 2;
  tensor.codes = {codes, codes_shape, 2, TC_UINT8};
  return tc_dequantize(&tensor, 0, shape[0], dst, to, nullptr);
}
