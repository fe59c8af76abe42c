// SPDX-License-Identifier: Apache-2.0
// The options of quantize(), each described once.
#pragma once

#include <string_view>

#include "options/option.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"

namespace tensorcast::options {

// In the order in which interfaces list them. QuantizeOptions has the defaults. `help` is the sentence for quantize(),
// `convert_help` that for conversions of files.
inline constexpr std::tuple quantize_options{
    option("recipe", &QuantizeOptions::recipe, &tc_quantize_options::recipe,
           {.help = "the tool whose way is taken, or its mode; :func:`recipes` lists them",
            .more = "Default: the scheme's own, with one difference: a tensor of zeros has scale 1",
            .convert_help = "with a scheme: the tool or mode whose bytes are made, such as modelopt or rceil",
            .metavar = "RECIPE"}),
    option("group_size", &QuantizeOptions::group_size, &tc_quantize_options::group_size,
           {.only_with = {"int4-group", "`to` int4-group has groups"},
            .help = "``int4-group``: how many inputs share a scale: 32, 64 or 128",
            .more = "Default: 128",
            .convert_help =
                "int4-group: inputs that share a scale: 32, 64 or 128 (default: 128, but 64 or 32 for a weight "
                "whose inputs only these divide)"}),
    option("symmetric", &QuantizeOptions::symmetric, &tc_quantize_options::is_asymmetric,
           {.only_with = {"int4-group", "`to` int4-group has groups"},
            .help = "``int4-group``: ``False`` adds zero points",
            .convert_help = "int4-group: no zero points"}),
    option("power_of_two_scales", &QuantizeOptions::power_of_two_scales, &tc_quantize_options::power_of_two_scales,
           {.only_with = {"fp8-block", "scales of MX schemes are powers of two"},
            .help = "``fp8-block``: scales are rounded up to powers of two",
            .convert_help = "fp8-block: scales are powers of two, as float32 (DeepSeek's ue8m0)"}),
    option("compute_dtype", &QuantizeOptions::compute_dtype, &tc_quantize_options::compute_dtype,
           {.help = "the weight is rounded to this type first",
            .more = "Default: its own",
            .convert_help = "with a scheme: round weights to float32, bfloat16 or float16 first (default: their own "
                            "type; of quantized layers bfloat16)",
            .metavar = "DTYPE"}),
    option(
        "nonfinite", &QuantizeOptions::nonfinite, &tc_quantize_options::allows_nonfinite,
        {.words = {"error", "tool"},
         .c_is_truth = true,
         .help = "NaN and infinity are an error, or quantized to whatever the tool makes of them, if that is defined",
         .convert_help = "with a scheme: what becomes of NaN and infinity: an error, or what the recipe's tool makes "
                         "of them"}),
    option("maximum", &QuantizeOptions::maximum,
           {.help = "the largest magnitude that a scale of the whole tensor is made for, where several tensors share a "
                    "scale"}),
    option("clip", &QuantizeOptions::clip, &tc_quantize_options::clip,
           {.words = {"none", "mse"},
            .help = "``\"mse\"`` searches the scale of each block, from the recipe's down to half, for the smallest "
                    "sum of squared errors",
            .more = "Not with one scale for the whole tensor",
            .convert_help = "with a scheme: search the scale of each block, from the recipe's down to half, for the "
                            "smallest sum of squared errors (default: the recipe's)"}),
    // C has its numbers and their count; a plan.json, the file that they are in.
    option("importance", &QuantizeOptions::importance,
           {.help = "how much squared errors of each column count with ``clip``: an array of one number for each "
                    "column, or for each column of each matrix"}),
};

}  // namespace tensorcast::options
