// SPDX-License-Identifier: Apache-2.0
#include "block/recipe/recipe.hpp"

#include <algorithm>
#include <array>

#include "block/format/gguf_block.hpp"
#include "block/recipe/scale_rule_float.hpp"
#include "block/recipe/scale_rule_mx.hpp"
#include "block/recipe/scale_rule_nv.hpp"
#include "dtype/lower_case.hpp"
#include "kernels/gguf_low_bits.hpp"

namespace tensorcast::block {
namespace {

constexpr DType e8m0 = DType::float8_e8m0fnu;
constexpr DType e4m3 = DType::float8_e4m3fn;
constexpr DType e5m2 = DType::float8_e5m2;
constexpr DType e2m3 = DType::float6_e2m3fn;
constexpr DType e3m2 = DType::float6_e3m2fn;
constexpr DType e2m1 = DType::float4_e2m1fn;

struct Row {
  QuantizeRecipe words;
  Recipe recipe;
};

// x / s, or x times a factor, which the words of the row give.
constexpr ElementRule divided(DType element, int bits) { return {.element = element, .bits = bits}; }
constexpr ElementRule multiplied(DType element, int bits) {
  return {.element = element, .bits = bits, .multiplies = true};
}
// The quotient is rounded to the weights' type.
constexpr ElementRule rounded(DType element, int bits, Zeros zeros = Zeros::sign_kept) {
  return {.element = element, .bits = bits, .rounds = true, .zeros = zeros};
}
// ggml's float4 has no NaN to convert: it passes over it. All its other formats convert quotients to integers.
constexpr UnspecifiedInputs unspecified_of(GgufBlock block) {
  if (block == GgufBlock::mxfp4) return UnspecifiedInputs::infinity;
  return block == GgufBlock::nvfp4 ? UnspecifiedInputs::none : UnspecifiedInputs::both;
}
constexpr Recipe gguf_recipe(GgufBlock block) { return {.gguf = block, .undefined = unspecified_of(block)}; }

constexpr std::string_view rne_quotient = "nearest even of x / s";
constexpr std::string_view rne_clamped = "nearest even of clamp(x * 2^(127 - b))";
constexpr std::string_view rounded_quotient = "nearest even of clamp(w(x / s)); -0 becomes 0";
constexpr std::string_view down_never = "x * (1 / s), ties towards zero, never -0";

struct MxWords {
  std::string_view recipe;
  ScaleRule scale;
  bool multiplies;
  std::string_view scale_words, element_words;
};
constexpr auto common_mx = std::to_array<MxWords>({
    {"rceil", each<mx::rceil>, true, "amax * f32(1 / max), rounded up to a power of two", rne_clamped},
    {"rceil-torchao", each<mx::rceil_torchao>, true, "2^ceil(log2(amax / max)) in float32",
     "as rceil; byte 0 multiplies by 1"},
    {"floor", each<mx::floor>, false, "2^(exponent of amax - emax)", "nearest even of x / s; byte 0 divides by 2^-126"},
    {"ceil", each<mx::ceil>, false, "as floor, one more unless amax is a power of two", "as floor"},
    {"even", each<mx::even>, false, "as floor, of amax rounded to the element's mantissa", "as floor"},
    {"quark", each<mx::quark>, false, "as even, exponents -127 to 127; 2^-127 is written as byte 1",
     "nearest even of x / s; -0 of float4 and float6 is 0 in Quark on a CPU"},
});

struct MxScheme {
  std::string_view scheme, spelling;
  DType element;
  int bits;
};
constexpr auto mx_schemes = std::to_array<MxScheme>({
    {"mxfp8", "transformers-mxfp8", e4m3, 8},
    {"mxfp8-e5m2", "ocp", e5m2, 8},
    {"mxfp6", "compressed-tensors", e2m3, 6},
    {"mxfp6-e3m2", "compressed-tensors", e3m2, 6},
    {"mxfp4", "compressed-tensors", e2m1, 4},
});

constexpr std::string_view modelopt_scale = "2^ceil(log2(amax / max)) in float32, at least 2^-127";
constexpr std::string_view ct_mx_scale = "as even, with a mantissa of 1 bit (e2m3: 3)";

constexpr Row mx_row(std::string_view scheme, std::string_view recipe, std::string_view scale, std::string_view element,
                     Recipe made, bool uses_dtype = false, bool is_from_source = false) {
  made.scales = e8m0;
  const std::string_view spelling = std::ranges::find(mx_schemes, scheme, &MxScheme::scheme)->spelling;
  return {{scheme, recipe, spelling, scale, element, uses_dtype, is_from_source}, made};
}

constexpr auto tool_mx = std::to_array<Row>({
    mx_row("mxfp8", "te", "as rceil", rne_clamped, {.element = multiplied(e4m3, 8), .scale = each<mx::rceil>}, false,
           true),
    mx_row("mxfp8", "modelopt", modelopt_scale, rne_clamped,
           {.element = multiplied(e4m3, 8), .scale = each<mx::modelopt_mxfp8>}),
    mx_row("mxfp8", "compressed-tensors", ct_mx_scale, rounded_quotient,
           {.element = rounded(e4m3, 8, Zeros::negative_numbers), .scale = each<mx::compressed_tensors>}, true),
    mx_row("mxfp8", "deepgemm", "max(amax, 1e-4) / max, rounded up to a power of two", "nearest even of x * (1 / s)",
           {.element = multiplied(e4m3, 8), .scale = each<mx::deepgemm>}),
    mx_row("mxfp8", "mlx", "w(amax / max), rounded up to a power of two; the byte wraps", "nearest even of w(x / s)",
           {.element = rounded(e4m3, 8), .scale = each<mx::mlx>, .undefined = UnspecifiedInputs::both}, true),
    mx_row("mxfp8", "comfy", "2^ceil(log2(amax / max)) in float32, bytes 0 to 254",
           "nearest even of x / s; byte 0 divides by 0", {.element = divided(e4m3, 8), .scale = each<mx::comfy>}),
    mx_row("mxfp6", "compressed-tensors", ct_mx_scale, "nearest even of clamp(w(x / s))",
           {.element = rounded(e2m3, 6), .scale = each<mx::compressed_tensors>}, true),
    mx_row(
        "mxfp4", "modelopt", modelopt_scale, "x / s, ties towards zero; zeros become -0",
        {.element =
             {.element = e2m1, .bits = 4, .ties = Ties::towards_zero, .zeros = Zeros::always_negative, .nan_code = 8},
         .scale = each<mx::modelopt_mxfp4>}),
    mx_row("mxfp4", "compressed-tensors", ct_mx_scale, rounded_quotient,
           {.element = rounded(e2m1, 4, Zeros::negative_numbers), .scale = each<mx::compressed_tensors>}, true),
    mx_row("mxfp4", "deepgemm", "max(amax, 1e-4) / max, rounded up to a power of two", down_never,
           {.element = {.element = e2m1,
                        .bits = 4,
                        .multiplies = true,
                        .ties = Ties::towards_zero,
                        .zeros = Zeros::never_negative,
                        .nan_code = 7},
            .scale = each<mx::deepgemm>}),
    mx_row(
        "mxfp4", "mlx", "w(amax / max), rounded up to a power of two; the byte wraps",
        "w(x / s), ties towards zero, never -0",
        {.element = searched_float4(Search::quotients), .scale = each<mx::mlx>, .undefined = UnspecifiedInputs::both},
        true),
    mx_row("mxfp4", "ggml", "2^(floor(log2(amax)) - 2) in float32; the byte wraps",
           "x / s, ties towards zero, never -0",
           {.element = searched_float4(Search::numbers),
            .scale = each<mx::ggml>,
            .undefined = UnspecifiedInputs::infinity,
            .skips_nan = true}),
});

constexpr Row nvfp4(std::string_view recipe, std::string_view spelling, std::string_view scale,
                    std::string_view element, Recipe made, bool uses_dtype = false, bool is_from_source = false) {
  made.scales = e4m3;
  return {{"nvfp4", recipe, spelling, scale, element, uses_dtype, is_from_source}, made};
}

constexpr ElementRule positive_zeros = {.element = e2m1, .bits = 4, .zeros = Zeros::negative_numbers};

constexpr auto nvfp4_rows = std::to_array<Row>({
    nvfp4("modelopt", "modelopt", "g = amax / 2688; s = clamp(bmax / (6 g), 2^-9, 448), 0 becomes 1",
          "nearest even of x / (s g); -0 becomes 0",
          {.element = positive_zeros,
           .scale = each<nv::modelopt>,
           .global = nv::modelopt_global,
           .stored_global = GlobalScale::factor}),
    nvfp4("compressed-tensors", "compressed-tensors",
          "divisor g = w(w(1 / max(amax, tiny)) * 2688); s = g * w(bmax / 6), 0 becomes 0.125",
          "nearest even of x / (s / g); -0 becomes 0",
          {.element = positive_zeros,
           .scale = each<nv::compressed_tensors>,
           .global = nv::compressed_tensors_global,
           .stored_global = GlobalScale::divisor},
          true),
    nvfp4("torchao", "modelopt", "g = amax / 2688; s = clamp((bmax / 6) / g, 2^-6, 448)",
          "nearest even of x * ((1 / g) / s)",
          {.element = multiplied(e2m1, 4),
           .scale = each<nv::torchao>,
           .global = nv::modelopt_global,
           .stored_global = GlobalScale::factor}),
    nvfp4("torchao-one-level", "modelopt", "s = clamp(bmax / 6, 2^-6, 448); no g", "nearest even of x * (1 / s)",
          {.element = multiplied(e2m1, 4), .scale = each<nv::torchao_one_level>}),
    nvfp4("te", "modelopt", "e = 2688 / amax, g = 1 / e; s = bmax * (e * f32(1 / 6))",
          "nearest even of x * (1 / (s g))",
          {.element = multiplied(e2m1, 4),
           .scale = each<nv::te>,
           .global = nv::te_global,
           .stored_global = GlobalScale::factor}),
    nvfp4("comfy", "comfyui", "g = w(amax / 2688); s = min((bmax / 6) / g, 448)", "nearest even of x / (g s)",
          {.element = {.element = e2m1, .bits = 4, .nan_code = 3, .nan_has_sign = true},
           .scale = each<nv::comfy>,
           .global = nv::comfy_global,
           .stored_global = GlobalScale::factor},
          true),
    nvfp4("mlx", "modelopt", "s = w(bmax / 6); no g", "w(x / s), ties towards zero, never -0",
          {.element = searched_float4(Search::quotients), .scale = each<nv::mlx>}, true),
    nvfp4("ggml", "modelopt", "s = bmax / 6, ties away from zero, 448 from 256 on; no g",
          "x / s, ties towards zero, never -0",
          {.element = searched_float4(Search::numbers), .scale = each<nv::ggml>, .skips_nan = true}),
});

constexpr std::string_view in_dtype = "w(amax / 448)";
constexpr Row fp8_row(std::string_view scheme, std::string_view recipe, std::string_view scale,
                      std::string_view element, Recipe made, bool uses_dtype = true, bool is_from_source = false) {
  const bool is_block = scheme == "fp8-block";
  return {{scheme, recipe, is_block ? "deepseek" : "compressed-tensors", scale, element, uses_dtype, is_from_source},
          made};
}
constexpr Row fp8_torchao(std::string_view scheme) {
  return fp8_row(scheme, "torchao", in_dtype, rne_quotient,
                 {.element = divided(e4m3, 8), .scale = each<fp8::torchao>, .narrow_scales = true});
}
constexpr Row fp8_ct(std::string_view scheme) {
  return fp8_row(scheme, "compressed-tensors", "w(amax / 448), 0 becomes the type's epsilon", rounded_quotient,
                 {.element = rounded(e4m3, 8, Zeros::negative_numbers),
                  .scale = each<fp8::compressed_tensors>,
                  .narrow_scales = true});
}
constexpr Row fp8_modelopt(std::string_view scheme) {
  return fp8_row(scheme, "modelopt", in_dtype, "nearest even of w(x / s)",
                 {.element = rounded(e4m3, 8), .scale = each<fp8::torchao>, .narrow_scales = true});
}

constexpr auto fp8_rows = std::to_array<Row>({
    fp8_torchao("fp8-tensor"),
    fp8_ct("fp8-tensor"),
    fp8_row("fp8-tensor", "modelopt", "amax / 448", "nearest even of w(x / s)",
            {.element = rounded(e4m3, 8), .scale = each<fp8::modelopt_export>}),
    fp8_row("fp8-tensor", "comfy", in_dtype, "nearest even of w(x * w(1 / s))",
            {.element = {.element = e4m3, .bits = 8, .multiplies = true, .rounds = true},
             .scale = each<fp8::comfy>,
             .narrow_scales = true}),
    fp8_torchao("fp8-channel"),
    fp8_ct("fp8-channel"),
    fp8_modelopt("fp8-channel"),
    fp8_row("fp8-block", "deepseek", "max(amax, 1e-4) / 448; power of two: 2^ceil(log2(s))", rne_quotient,
            {.element = divided(e4m3, 8), .scale = each<fp8::deepseek>, .option = RecipeOption::power_of_two}, false,
            true),
    fp8_row("fp8-block", "deepseek-v3.2", "max(amax, 1e-4) * f32(1 / 448); power of two: rounded up exactly",
            rne_quotient,
            {.element = divided(e4m3, 8), .scale = each<fp8::deepseek_v3_2>, .option = RecipeOption::power_of_two},
            false, true),
    fp8_row("fp8-block", "deepgemm", "max(amax, 1e-4) / 448; power of two: rounded up exactly",
            "nearest even of x * (1 / s)",
            {.element = multiplied(e4m3, 8), .scale = each<fp8::deepgemm>, .option = RecipeOption::power_of_two},
            false),
    fp8_row("fp8-block", "transformers", "r = (1 / amax) * 448, s = 1 / r; power of two: 2^ceil(log2(s))",
            "nearest even of x * r",
            {.element = multiplied(e4m3, 8), .scale = each<fp8::transformers>, .option = RecipeOption::power_of_two},
            false),
    fp8_torchao("fp8-block"),
    fp8_ct("fp8-block"),
    fp8_modelopt("fp8-block"),
});

constexpr ElementRule integers(int bits) { return {.element = DType::int8, .bits = bits, .rounds = true}; }
constexpr Recipe int4_recipe = {.element = integers(4),
                                .scale = each<integer::int4>,
                                .asymmetric = each<integer::int4_asymmetric>,
                                .option = RecipeOption::group,
                                .narrow_scales = true};
constexpr Recipe int8_recipe = {.element = integers(8), .scale = each<integer::int8>, .narrow_scales = true};
constexpr Recipe comfy_int8_recipe = {.element = integers(8), .scale = each<integer::comfy_int8>};

constexpr Row gguf_row(GgufBlock block, std::string_view scale, std::string_view element) {
  return {{row(block).scheme, "ggml", "gguf", scale, element, false, false}, gguf_recipe(block)};
}
constexpr auto other_rows = std::to_array<Row>({
    {{"int8-channel", "compressed-tensors", "compressed-tensors", "w(amax / 127.5), 0 becomes the type's epsilon",
      "round half even of w(x / s), -128 to 127", true, false},
     int8_recipe},
    {{"int8-channel", "comfy", "compressed-tensors", "s = max(amax / 127, 1e-30), in float32",
      "round half even of w(x / w(s)), -128 to 127", true, false},
     comfy_int8_recipe},
    {{"int4-group", "compressed-tensors", "compressed-tensors",
      "w(amax / 7.5); asymmetric: w(w(high - low) / 15), z = w(-8 - w(low / s))",
      "round half even of w(w(x / s) + z), -8 to 7", true, false},
     int4_recipe},
    gguf_row(GgufBlock::q8_0, "d = amax / 127", "round half away of x * (1 / d)"),
    gguf_row(GgufBlock::q4_0, "d = (first number of largest magnitude) / -8", "trunc(x * (1 / d) + 8.5), at most 15"),
    gguf_row(GgufBlock::q4_1, "d = (high - low) / 15, m = low", "trunc((x - m) * (1 / d) + 0.5), at most 15"),
    gguf_row(GgufBlock::q5_0, "d = (first number of largest magnitude) / -16", "trunc(x * (1 / d) + 16.5), at most 31"),
    gguf_row(GgufBlock::q5_1, "d = (high - low) / 31, m = low", "trunc((x - m) * (1 / d) + 0.5)"),
    gguf_row(GgufBlock::q2_k, "least error over 16 steps, then 4 bits", "nearest of (x + m) / d, 0 to 3"),
    gguf_row(GgufBlock::q3_k, "least squares, code by code, then 6 bits", "nearest of x / d, -4 to 3"),
    gguf_row(GgufBlock::q4_k, "least squares over 21 steps, then 6 bits", "nearest of (x + m) / d, 0 to 15"),
    gguf_row(GgufBlock::q5_k, "least squares over 16 steps, then 6 bits", "nearest of (x + m) / d, 0 to 31"),
    gguf_row(GgufBlock::q6_k, "least squares over 19 steps, then 8 bits", "nearest of x / d, -32 to 31"),
    gguf_row(GgufBlock::iq4_nl, "least squares over 15 steps", "nearest of a table to x * (1 / d)"),
    gguf_row(GgufBlock::iq4_xs, "least squares over 15 steps, then 6 bits", "nearest of a table to x * (1 / d)"),
});

constexpr std::size_t row_count =
    mx_schemes.size() * common_mx.size() + tool_mx.size() + nvfp4_rows.size() + fp8_rows.size() + other_rows.size();

// Schemes in the order of docs/blocks.md, the default recipe first in each.
constexpr std::array<Row, row_count> rows = [] {
  std::array<Row, row_count> made{};
  std::size_t n = 0;
  for (const Row& row : fp8_rows) made[n++] = row;
  for (const MxScheme& scheme : mx_schemes) {
    for (const MxWords& mode : common_mx) {
      const ElementRule element{.element = scheme.element, .bits = scheme.bits, .multiplies = mode.multiplies};
      const bool is_from_source = mode.recipe == "rceil";
      const UnspecifiedInputs numbers = mode.recipe == "quark" ? UnspecifiedInputs::nan : UnspecifiedInputs::none;
      made[n++] = {
          {scheme.scheme, mode.recipe, scheme.spelling, mode.scale_words, mode.element_words, false, is_from_source},
          {.element = element, .scale = mode.scale, .scales = e8m0, .undefined = numbers}};
    }
    for (const Row& row : tool_mx) {
      if (row.words.scheme == scheme.scheme) made[n++] = row;
    }
  }
  for (const Row& row : nvfp4_rows) made[n++] = row;
  for (const Row& row : other_rows) made[n++] = row;
  return made;
}();

constexpr std::array<QuantizeRecipe, row_count> words = [] {
  std::array<QuantizeRecipe, row_count> made{};
  std::transform(rows.begin(), rows.end(), made.begin(), [](const Row& row) { return row.words; });
  return made;
}();

constexpr auto gguf_recipes = [] {
  std::array<Recipe, static_cast<std::size_t>(kernels::last_gguf_block) + 1> made{};
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = gguf_recipe(static_cast<GgufBlock>(i));
  return made;
}();

}  // namespace

const Recipe& recipe_of(GgufBlock block) noexcept { return gguf_recipes[static_cast<std::size_t>(block)]; }

std::string known_recipes(std::string_view scheme) {
  std::string known;
  for (const QuantizeRecipe& row : words) {
    if (!is_same_name(row.scheme, scheme)) continue;
    known += known.empty() ? "" : ", ";
    known += row.recipe;
  }
  return known;
}

std::string known_schemes() {
  std::string known;
  std::string_view last;
  for (const QuantizeRecipe& row : words) {
    if (row.scheme == last) continue;
    known += known.empty() ? "" : ", ";
    known += row.scheme;
    last = row.scheme;
  }
  return known;
}

const Recipe& recipe_of(const QuantizeRecipe& row) noexcept {
  return rows[static_cast<std::size_t>(&row - words.data())].recipe;
}

}  // namespace tensorcast::block

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::span<const QuantizeRecipe> quantize_recipes() noexcept { return block::words; }

const QuantizeRecipe* find_quantize_recipe(std::string_view scheme, std::string_view recipe) noexcept {
  const auto* found = std::find_if(block::words.begin(), block::words.end(), [&](const QuantizeRecipe& row) {
    return is_same_name(row.scheme, scheme) && (recipe.empty() || is_same_name(row.recipe, recipe));
  });
  return found == block::words.end() ? nullptr : found;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
