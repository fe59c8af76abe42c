// SPDX-License-Identifier: Apache-2.0
#include "quantized/detect/recipe_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "block/recipe/recipe.hpp"
#include "quantized/detect/recipe_trials.hpp"
#include "quantized/rewrite/respelled_codes.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t most_layer_codes = std::uint64_t{4} << 20, most_codes = std::uint64_t{64} << 20;
constexpr std::size_t byte_values = 256;

// Bytes of scales that are far from the limits of their type, where a block's codes depend on its largest number's
// mantissa alone.
struct NormalScales {
  unsigned first, last;
};
NormalScales normal_scales_of(DType scales) {
  return scales == DType::float8_e8m0fnu ? NormalScales{40, 215} : NormalScales{0x18, 0x77};
}

// Bytes of scales and largest codes that a recipe can make, collected by running it on blocks made for it.
struct PossibleBytes {
  std::string_view recipe;
  std::bitset<byte_values> scales;       // bytes that occur
  std::bitset<byte_values / 2> largest;  // magnitudes of a block's largest code, if its scale is normal
  bool negative_zero = false;            // the code of -0 occurs
};

// Numbers that are the largest of a block: mantissas in small steps, and numbers beside those where rules change.
std::vector<float> mantissas() {
  std::vector<float> numbers;
  for (int i = 0; i < 64; ++i) numbers.push_back(1.0f + static_cast<float>(i) / 64.0f);
  for (int i = 16; i <= 32; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(i) / 16.0f);
    for (const std::uint32_t step : {0u, 1u, 2u, 24u}) {
      numbers.push_back(std::bit_cast<float>(bits + step));
      numbers.push_back(std::bit_cast<float>(bits - step));
    }
  }
  return numbers;
}

// Adds what the recipe writes of blocks with these largest numbers; a small negative number is beside each.
void add_possible(PossibleBytes& possible, const std::string& scheme, DType compute, const std::vector<float>& largest,
                  std::int64_t block) {
  const auto rows = static_cast<std::int64_t>(largest.size());
  std::vector<float> numbers(largest.size() * static_cast<std::size_t>(block), 0.0f);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    numbers[i * static_cast<std::size_t>(block)] = largest[i];
    numbers[i * static_cast<std::size_t>(block) + 1] = -std::ldexp(largest[i], -12);
  }
  const Result<QuantizedTensor> made = quantize(
      {DType::float32, Shape(std::vector<std::int64_t>{rows, block}), std::as_bytes(std::span(numbers))}, scheme,
      {.recipe = possible.recipe, .compute_dtype = compute, .nonfinite = NonFiniteWeights::tool}, {.threads = 1});
  if (!made) return;
  const Result<std::vector<std::byte>> codes = element_codes(*made);
  if (!codes) return;
  const int bits = made->coding.bits;
  const unsigned sign = 1u << (bits - 1);
  const NormalScales normal = normal_scales_of(made->scales_dtype);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const unsigned scale = std::to_integer<unsigned>(made->scales[i]);
    possible.scales.set(scale);
    const unsigned first = std::to_integer<unsigned>((*codes)[i * static_cast<std::size_t>(block)]) & (sign - 1);
    const unsigned second = std::to_integer<unsigned>((*codes)[i * static_cast<std::size_t>(block) + 1]);
    const unsigned last = std::to_integer<unsigned>((*codes)[(i + 1) * static_cast<std::size_t>(block) - 1]);
    if (scale >= normal.first && scale <= normal.last) possible.largest.set(first);
    possible.negative_zero = possible.negative_zero || second == sign || last == sign;
  }
}

std::vector<PossibleBytes> collect_possible(const std::string& scheme) {
  const std::int64_t block = find_block_format(scheme)->block_columns;
  const bool nv = block::recipe_of(*find_quantize_recipe(scheme)).scales == DType::float8_e4m3fn;
  const std::vector<float> steps = mantissas();
  std::vector<PossibleBytes> all;
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    if (recipe.scheme != scheme) continue;
    PossibleBytes& possible = all.emplace_back();
    possible.recipe = recipe.recipe;
    for (const DType compute : {DType::float32, DType::bfloat16, DType::float16}) {
      // Float16 has exponents from -14 to 15.
      const int reach = compute == DType::float16 ? 14 : 125;
      std::vector<float> largest = {0.0f};
      if (!nv) {
        for (int e = -reach; e <= reach; ++e) {
          for (const float step : {1.0f, 1.3f, 1.6f, 1.9f}) largest.push_back(std::ldexp(step, e));
        }
        largest.insert(largest.end(), steps.begin(), steps.end());
        add_possible(possible, scheme, compute, largest, block);
        continue;
      }
      // Tensors of several sizes, with blocks down to 2^-20 of the largest one.
      for (const float top : {1.0f, 1.37f, 1.75f, 2688.0f}) {
        largest = {0.0f, top};
        for (int e = 1; e <= (compute == DType::float16 ? 12 : 20); ++e) {
          for (const float step : steps) largest.push_back(std::ldexp(std::min(top * step, top * 2.0f), -e));
        }
        add_possible(possible, scheme, compute, largest, block);
      }
    }
  }
  return all;
}

// Found out once in a process.
const std::vector<PossibleBytes>& possible_of(const std::string& scheme) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<PossibleBytes>> known;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = known.try_emplace(scheme);
  if (is_new) entry->second = collect_possible(scheme);
  return entry->second;
}

bool has_evidence(const std::string& scheme) {
  const QuantizeRecipe* const recipe = find_quantize_recipe(scheme);
  return recipe != nullptr && bit_width(block::recipe_of(*recipe).scales) == 8;
}

struct Seen {
  const std::vector<PossibleBytes>* possible = nullptr;
  std::vector<bool> excluded;
  std::uint64_t layers = 0, blocks = 0, zeroed = 0, wrapped = 0;
  std::string zeroed_layer, wrapped_layer;
};

class Evidence {
 public:
  Evidence(const FoundLayers& found, formats::Reader& reader) : found_(found), reader_(reader) {}

  void run(ScaleRemarks& remarks) {
    for (const Layer& layer : found_.layers) {
      if (!layer.problem.empty() && !layer.other_basis) continue;
      const std::string scheme = scheme_of_recipes(layer);
      if (has_evidence(scheme)) look(layer, scheme);
    }
    for (const auto& [scheme, seen] : seen_) say(scheme, seen, remarks);
  }

 private:
  void look(const Layer& layer, const std::string& scheme) {
    PartReader parts(reader_, layer);
    const Result<LayerContent> content = content_of(layer, parts.infos());
    if (!content || content->columns() == 0) return;
    const std::uint64_t limit = std::min(most_layer_codes, most_codes - read_);
    const std::uint64_t rows = std::min(content->rows(), limit / content->columns());
    if (rows == 0) return;
    const Result<std::unique_ptr<RespelledCodes>> opened = RespelledCodes::create(std::move(parts), *content, {});
    if (!opened) return;
    std::vector<std::byte> codes(rows * content->columns()), scales(rows * content->grid_columns());
    if (!(*opened)->codes(0, codes) || !(*opened)->scales(0, scales)) return;
    read_ += codes.size();
    const auto [entry, is_new] = seen_.try_emplace(scheme);
    if (is_new) {
      entry->second.possible = &possible_of(scheme);
      entry->second.excluded.resize(entry->second.possible->size());
    }
    count(layer, *content, codes, scales, entry->second);
  }

  static void count(const Layer& layer, const LayerContent& content, std::span<const std::byte> codes,
                    std::span<const std::byte> scales, Seen& seen) {
    ++seen.layers;
    const std::uint64_t columns = content.columns(), grid = content.grid_columns();
    const auto width = static_cast<std::uint64_t>(content.block_columns);
    const std::byte sign{static_cast<std::uint8_t>(1u << (content.coding.bits - 1))};
    const NormalScales normal = normal_scales_of(content.scales());
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const std::uint64_t begin = i / grid * columns + i % grid * width;
      const auto block = codes.subspan(begin, std::min(width, columns - i % grid * width));
      unsigned largest = 0;
      bool negative_zero = false;
      for (const std::byte code : block) {
        largest = std::max(largest, std::to_integer<unsigned>(code & ~sign) & (std::to_integer<unsigned>(sign) - 1));
        negative_zero = negative_zero || code == sign;
      }
      const unsigned scale = std::to_integer<unsigned>(scales[i]);
      const bool is_normal = scale >= normal.first && scale <= normal.last;
      for (std::size_t k = 0; k < seen.possible->size(); ++k) {
        const PossibleBytes& possible = (*seen.possible)[k];
        if (!possible.scales.test(scale) || (negative_zero && !possible.negative_zero) ||
            (is_normal && largest != 0 && !possible.largest.test(largest))) {
          seen.excluded[k] = true;
        }
      }
      ++seen.blocks;
      const bool e8m0 = content.scales() == DType::float8_e8m0fnu;
      if (!e8m0 && (scale & 0x7f) == 0 && largest != 0 && seen.zeroed++ == 0) seen.zeroed_layer = layer.name;
      // 2^113 and more is no weight; mlx and ggml write such bytes for numbers below their range.
      if (e8m0 && scale >= 240 && scale != 255 && seen.wrapped++ == 0) seen.wrapped_layer = layer.name;
    }
  }

  static void say(const std::string& scheme, const Seen& seen, ScaleRemarks& remarks) {
    std::vector<std::string_view> left, gone;
    for (std::size_t k = 0; k < seen.possible->size(); ++k) {
      (seen.excluded[k] ? gone : left).push_back((*seen.possible)[k].recipe);
    }
    if (left.empty()) {
      remarks.notes.push_back(
          fmt::format("{}: codes and scales of {} blocks exclude every recipe, as of weights that were "
                      "calibrated or made by another tool",
                      scheme, seen.blocks));
    } else if (!gone.empty()) {
      remarks.notes.push_back(fmt::format("{}: codes and scales of {} blocks exclude the recipes {}; left: {}", scheme,
                                          seen.blocks, fmt::join(gone, ", "), fmt::join(left, ", ")));
    }
    if (seen.zeroed != 0) {
      remarks.warnings.push_back(
          fmt::format("\"{}\" has blocks whose scale is zero and whose codes are not ({} in all layers)",
                      seen.zeroed_layer, seen.zeroed));
    }
    if (seen.wrapped != 0) {
      remarks.warnings.push_back(
          fmt::format("\"{}\" has scales of 2^113 and more ({} in all layers), as bytes that wrapped",
                      seen.wrapped_layer, seen.wrapped));
    }
  }

  const FoundLayers& found_;
  formats::Reader& reader_;
  std::uint64_t read_ = 0;
  std::map<std::string, Seen> seen_;
};

}  // namespace

void add_recipe_remarks(const FoundLayers& found, formats::Reader& reader, ScaleRemarks& remarks) {
  Evidence(found, reader).run(remarks);
}

}  // namespace tensorcast::quantized
