// SPDX-License-Identifier: Apache-2.0
// Component files. Finds the recipes that quantized weights were made by: quantizes the original by each recipe, and
// compares all bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// A recipe that was tried on a weight: quantize()'s options, of which `recipe` is of quantize_recipes(). `maximum` and
// `importance` are not set.
struct RecipeTrial : QuantizeOptions {
  bool shared_maximum = false;         // the tensor scale is that of q, k and v together, or of gate and up
  bool uses_importance = false;        // that of DetectRequest::importance
  std::uint64_t differing_blocks = 0;  // blocks of which a code, the scale or the zero point is another
  bool tensor_scale_differs = false;

  // Reports whether the trial's bytes are those of the weight.
  [[nodiscard]] bool fits() const noexcept { return differing_blocks == 0 && !tensor_scale_differs; }
  // As TensorOutcome::search: "clip mse", "importance", "clip mse, importance"; empty: the recipe's own.
  [[nodiscard]] TENSORCAST_API std::string search() const;
};

struct LayerRecipes {
  std::string name = {};  // of the weight, as QuantizedLayer::name
  std::string_view spelling = {};
  std::string scheme = {};  // as tried: "mxfp8-e5m2" where QuantizedLayer says "mxfp8" with such codes
  std::vector<std::string> tensors = {};
  std::uint64_t blocks = 0;           // that share a scale; rows, if there is one for the tensor
  std::uint64_t deciding_blocks = 0;  // blocks whose bytes exclude a trial
  std::vector<RecipeTrial> trials = {};
  std::string problem = {};  // why nothing was tried: there is no original of this name, no recipe for the scheme

  // The names of the recipes of trials that fit, each once, in the order of quantize_recipes(): no byte tells them
  // apart.
  [[nodiscard]] TENSORCAST_API std::vector<std::string_view> recipes() const;
  // The same with their searches: "rceil", "rceil with clip mse".
  [[nodiscard]] TENSORCAST_API std::vector<std::string> ways() const;
};

struct DetectRequest {
  std::string input = {};     // a file or checkpoint with quantized layers
  std::string original = {};  // a file or checkpoint with their weights in float32, bfloat16 or float16
  // A file as QuantizeTargets::importance, for weights that were made with it; without it these are not known.
  std::string importance = {};
  bool only_recorded = false;                // try what the metadata of `input` record; of other inputs all recipes
  std::vector<std::string> skip_files = {};  // of the checkpoint `original`: as OutputFilter::skip_files
  Execution execution = {};
  std::function<bool(const Progress&)> on_progress = {};  // returns false to cancel
};

// Tries the recipes of each layer's scheme, computed in float32, bfloat16 and float16 where this makes a difference;
// and where none fits, with Clip::mse, of which those that fit are listed. Layers and originals are matched by name.
// Errors: io, parse; invalid_argument (the importance of no layer); cancelled. Cost: reads both once, the original
// twice if a scheme has a tensor scale; as many quantizations as trials. Memory: a few MiB for each trial, and one
// matrix of layers that are stored transposed.
[[nodiscard]] TENSORCAST_API Result<std::vector<LayerRecipes>> detect_recipes(const DetectRequest& request);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
