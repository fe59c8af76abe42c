// SPDX-License-Identifier: Apache-2.0
// The options of a conversion, each described once.
#pragma once

#include "options/option.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast_options.hpp"

namespace tensorcast::options {

// newest_opset() as a constant.
inline constexpr int newest_known_opset = 28;

// D16. Zarr and P3109 spell some of them otherwise.
inline constexpr Words roundings({"auto", "nearest_even", "nearest_away", "toward_zero", "toward_positive",
                                  "toward_negative", "to_odd", "stochastic"},
                                 {{"nearest-even", 1},
                                  {"nearest-away", 2},
                                  {"towards-zero", 3},
                                  {"trunc", 3},
                                  {"towards-positive", 4},
                                  {"up", 4},
                                  {"towards-negative", 5},
                                  {"down", 5}});

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
    option("rounding", &CastOptions::rounding, &tc_cast_options::rounding,
           {.words = roundings,
            .help = "which neighbour a number between two of the target's becomes: nearest_even, nearest_away, "
                    "toward_zero, toward_positive, toward_negative, to_odd, stochastic (default {}: integers "
                    "toward_zero, floats nearest_even, float8_e8m0fnu as round_mode says)",
            .metavar = "WORD"}),
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
    option("seed", &CastOptions::seed, &tc_cast_options::seed,
           {.help = "of stochastic rounding (default {}), whose bits depend on it and on the places of elements alone",
            .metavar = "N"}),
    option("inexact", &CastOptions::inexact, &tc_cast_options::inexact,
           {.words = {"auto", "error"},
            .help = "numbers whose value would change: rounded, or refused (error)",
            .flag = "on_inexact"}),
};

}  // namespace tensorcast::options
