// SPDX-License-Identifier: Apache-2.0
// tcast schemes, tcast recipes: what weights can be quantized to, by which tools' rules, and in whose layouts.
#include <algorithm>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "flags/options.hpp"
#include "flags/suggestion.hpp"
#include "print/report_json.hpp"
#include "print/text_table.hpp"
#include "process/terminal.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/spelling.hpp"

namespace tcast {
namespace {

using tensorcast::QuantizeRecipe;

struct SchemesArguments {
  std::string scheme;  // of `recipes`
  bool json = false;
  bool quiet = false;
};

constexpr const char* schemes_examples = R"(Examples:
  tcast schemes
  tcast recipes nvfp4
  tcast schemes --json | jq -r '.[] | select(.bits < 5).scheme'
  tcast convert folder/ -o out --to nvfp4:compressed-tensors
Layouts are names for --spelling; the first is that of the scheme without it.)";

// A layout and who loads it, by the documentation of the loaders.
struct LayoutLoaders {
  std::string_view layout, loaders;
};
constexpr LayoutLoaders loaders[] = {{"compressed-tensors", "vLLM, SGLang, transformers"},
                                     {"modelopt", "vLLM, SGLang, TensorRT-LLM"},
                                     {"deepseek", "vLLM, SGLang, transformers"},
                                     {"gpt-oss", "vLLM, SGLang, transformers"},
                                     {"transformers-mxfp8", "vLLM, SGLang"},
                                     {"comfyui", "ComfyUI"},
                                     {"quark", "vLLM, SGLang"},
                                     {"gguf", "llama.cpp, ComfyUI-GGUF"}};

std::string_view loaders_of(std::string_view layout) {
  const auto* const found = std::ranges::find(loaders, layout, &LayoutLoaders::layout);
  return found == std::end(loaders) ? std::string_view() : found->loaders;
}

// A scheme with what is true of each of its recipes, found by quantizing a weight of zeros.
struct SchemeRow {
  std::string_view scheme;
  std::string_view default_recipe;
  std::vector<std::string_view> recipes;
  std::vector<std::string_view> layouts;
  double bits = 0.0;
};

std::vector<std::string_view> layouts_of(const tensorcast::QuantizedTensor& weight, std::string_view usual) {
  std::vector<std::string_view> layouts;
  for (const std::string_view layout : tensorcast::written_spellings()) {
    if (spell(weight, layout, tensorcast::DType::bfloat16)) layouts.push_back(layout);
  }
  std::ranges::stable_partition(layouts, [&](std::string_view layout) { return layout == usual; });
  return layouts;
}

SchemeRow row_of(std::string_view scheme) {
  SchemeRow row{.scheme = scheme};
  for (const QuantizeRecipe& recipe : tensorcast::quantize_recipes()) {
    if (recipe.scheme != scheme) continue;
    row.recipes.push_back(recipe.recipe);
  }
  row.default_recipe = row.recipes.front();
  constexpr std::int64_t extent = 256;
  const std::vector<std::byte> zeros(extent * extent * 2);
  const std::int64_t shape[] = {extent, extent};
  const tensorcast::TensorView weight{tensorcast::DType::bfloat16, shape, zeros};
  const auto made = quantize(weight, scheme);
  if (!made) return row;
  const std::size_t bytes = made->codes.size() + made->scales.size();
  row.bits = 8.0 * static_cast<double>(bytes) / static_cast<double>(extent * extent);
  row.layouts = layouts_of(*made, tensorcast::find_quantize_recipe(scheme)->spelling);
  const auto* const gguf = tensorcast::find_block_format(scheme, "gguf");
  if (gguf != nullptr && std::ranges::find(row.layouts, "gguf") == row.layouts.end()) row.layouts.push_back("gguf");
  return row;
}

std::vector<std::string_view> scheme_list() {
  std::vector<std::string_view> schemes;
  for (const QuantizeRecipe& recipe : tensorcast::quantize_recipes()) {
    if (schemes.empty() || schemes.back() != recipe.scheme) schemes.push_back(recipe.scheme);
  }
  return schemes;
}

Json layouts_json(const SchemeRow& row) {
  Json layouts = Json::array();
  for (const std::string_view layout : row.layouts) {
    layouts.push_back({{"layout", layout}, {"loaders", loaders_of(layout)}});
  }
  return layouts;
}

void print_schemes(bool json) {
  Table table({{"scheme"}, {"bits", Align::right}, {"recipes, the default first"}, {"layouts, the default first"}});
  Json list = Json::array();
  for (const std::string_view scheme : scheme_list()) {
    const SchemeRow row = row_of(scheme);
    table.add_row({std::string(scheme), fmt::format("{:.4g}", row.bits), fmt::format("{}", fmt::join(row.recipes, " ")),
                   fmt::format("{}", fmt::join(row.layouts, " "))});
    list.push_back({{"scheme", scheme},
                    {"bits", row.bits},
                    {"default_recipe", row.default_recipe},
                    {"recipes", row.recipes},
                    {"layouts", layouts_json(row)}});
  }
  print(json ? json_text(list) : table.to_string());
}

void print_recipes(std::string_view scheme, bool json) {
  Table table({{"recipe"}, {"scale"}, {"code"}});
  Json list = Json::array();
  for (const QuantizeRecipe& recipe : tensorcast::quantize_recipes()) {
    if (recipe.scheme != scheme) continue;
    table.add_row({std::string(recipe.recipe), std::string(recipe.scale), std::string(recipe.element)});
    list.push_back({{"recipe", recipe.recipe},
                    {"default", recipe.recipe == tensorcast::find_quantize_recipe(scheme)->recipe},
                    {"layout", recipe.spelling},
                    {"scale", recipe.scale},
                    {"code", recipe.element}});
  }
  const SchemeRow row = row_of(scheme);
  if (json) {
    print(json_text({{"scheme", scheme}, {"bits", row.bits}, {"recipes", list}, {"layouts", layouts_json(row)}}));
    return;
  }
  std::string text = table.to_string() + "\nThe first is the default. Layouts, and who loads them:\n";
  for (const std::string_view layout : row.layouts) text += fmt::format("{:<18}  {}\n", layout, loaders_of(layout));
  print(text);
}

// Returns the scheme as the table spells it. Errors: misuse, with schemes that are alike.
std::string_view scheme_named(const std::string& text) {
  if (const QuantizeRecipe* recipe = tensorcast::find_quantize_recipe(text)) return recipe->scheme;
  const auto scheme = tensorcast::parse_scheme_candidate(text);
  throw CLI::ValidationError("SCHEME", fmt::format("{}; {}", scheme.error().message, scheme.error().hint));
}

}  // namespace

std::vector<std::string> scheme_words() {
  const std::vector<std::string_view> schemes = scheme_list();
  return {schemes.begin(), schemes.end()};
}

std::vector<std::string> recipe_words() {
  std::vector<std::string> words;
  for (const QuantizeRecipe& recipe : tensorcast::quantize_recipes()) {
    if (std::ranges::find(words, recipe.recipe) == words.end()) words.emplace_back(recipe.recipe);
  }
  return words;
}

void add_schemes(CLI::App& app, Work& work) {
  CLI::App& command =
      *app.add_subcommand("schemes", "List the schemes that weights are quantized to, and their layouts");
  command.footer(schemes_examples);
  const auto arguments = std::make_shared<SchemesArguments>();
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] {
    work = [arguments] {
      if (!arguments->quiet || arguments->json) print_schemes(arguments->json);
      return exit_done;
    };
  });
}

void add_recipes(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("recipes", "List the recipes of a scheme: how tools choose scales and codes");
  command.footer(schemes_examples);
  const auto arguments = std::make_shared<SchemesArguments>();
  command.add_option("SCHEME", arguments->scheme, "such as nvfp4; tcast schemes lists them")->required();
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] {
    const std::string_view scheme = scheme_named(arguments->scheme);
    work = [arguments, scheme] {
      if (!arguments->quiet || arguments->json) print_recipes(scheme, arguments->json);
      return exit_done;
    };
  });
}

}  // namespace tcast
