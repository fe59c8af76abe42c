// SPDX-License-Identifier: Apache-2.0
// The options of a conversion, each described once.
#pragma once

#include "options/option.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast.hpp"

namespace tensorcast::options {

// newest_opset() as a constant.
inline constexpr int newest_known_opset = 28;

// In the order in which interfaces list them. CastOptions has the defaults.
inline constexpr std::tuple cast_options{
    option("opset", &CastOptions::opset, &tc_cast_options::opset,
           {.low = 0,
            .high = newest_known_opset,
            .zero_means = newest_known_opset,
            .help = "convert as this version of ONNX Cast does (default {})"}),
    option("saturate", &CastOptions::saturate, &tc_cast_options::saturate,
           {.since_opset = 19,
            .help = "float8: out-of-range values become the nearest finite value ({}, default), or infinity or NaN "
                    "(false)"}),
    option("round_mode", &CastOptions::round_mode, &tc_cast_options::round_mode,
           {.words = {"up", "down", "nearest"}, .since_opset = 24, .help = "rounding to float8_e8m0fnu (default {})"}),
    option("out_of_range", &CastOptions::out_of_range, &tc_cast_options::out_of_range,
           {.words = {"auto", "wrap", "saturate", "error"},
            .help = "numbers out of the target's range (default {}: as ONNX, which wraps integers)",
            .more = "``\"saturate\"`` makes them the lowest or largest, ``\"error\"`` refuses them; ``\"auto\"`` and "
                    "``\"wrap\"`` are "
                    "ONNX's rules: integers wrap, floats become infinity or as ``saturate`` says",
            .convert_help = "numbers out of the target's range (default: to an integer type, error; else auto)"}),
    option("int_rounding", &CastOptions::int_rounding, &tc_cast_options::int_rounding,
           {.words = {"trunc", "nearest_even"}, .help = "fractions on the way to integers (default {})"}),
    option("invalid", &CastOptions::invalid, &tc_cast_options::invalid,
           {.words = {"default", "error"},
            .help = "NaN and Inf to integers, NaN to float4, negatives to unsigned floats"}),
    option("fnuz_inf", &CastOptions::fnuz_inf, &tc_cast_options::fnuz_inf,
           {.words = {"spec", "flt_max"}, .help = "infinity to the fnuz types at opset 19 to 23 (default {}: NaN)"}),
    option(
        "float_string", &CastOptions::float_string, &tc_cast_options::float_string,
        {.words = {"plain", "shortest", "g8"}, .for_strings = true, .help = "how floats become strings (default {})"}),
    option("scale", &CastOptions::scale, &tc_cast_options::scale,
           {.may_be_array = true,
            .help = "multiply by X before the one rounding (default {})",
            .more = "An array that broadcasts to the shape of ``x`` has a scale for each row, channel or element"}),
};

}  // namespace tensorcast::options
