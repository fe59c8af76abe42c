// SPDX-License-Identifier: Apache-2.0
// What the two files of compressed-tensors share: compressed_tensors.cpp finds its layers, and
// compressed_tensors_writer.cpp writes them.
#pragma once

#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {

// By their formats. Other float8, and integers, are what the configuration says of their blocks.
inline constexpr StoredScheme stored_by_compressed_tensors[] = {
    {.scheme = "nvfp4",
     .word = "nvfp4-pack-quantized",
     .coding = nvfp4_coding(GlobalScale::divisor),
     .codes = "weight_packed",
     .global = "weight_global_scale"},
    {.scheme = "mxfp4",
     .word = "mxfp4-pack-quantized",
     .coding = mx_coding(DType::float4_e2m1fn, 4),
     .codes = "weight_packed"},
    {.scheme = "mxfp6",
     .word = "mxfp6-pack-quantized",
     .coding = mx_coding(DType::float6_e2m3fn, 6),
     .codes = "weight_packed"},
    {.scheme = "mxfp8", .word = "mxfp8-quantized", .coding = mx_coding(DType::float8_e4m3fn, 8)}};

void spell_compressed_tensors(const LayerContent& content, WrittenLayer& written);
void describe_compressed_tensors(const WrittenModel& model, WrittenConfig& config);

}  // namespace tensorcast::quantized
