// SPDX-License-Identifier: Apache-2.0
#include "quantized/detect/recipe_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "block/encode/quantizer.hpp"
#include "block/format/code_packing.hpp"
#include "block/format/gguf_block.hpp"
#include "block/gguf/gguf_encode.hpp"
#include "cast/parallel.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"
#include "quantized/layer/hadamard.hpp"
#include "quantized/rewrite/respelled_codes.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t band_elements = std::uint64_t{1} << 20;
// A search takes 33 times as long, so most searched trials should end after little of the layer.
constexpr std::uint64_t first_searched_elements = std::uint64_t{1} << 14;

constexpr std::size_t few_trials = 4;  // these run one after another, each on all threads

// Rows of a layer as all trials are compared with them.
struct StoredRows {
  std::uint64_t first = 0, count = 0;  // of the part of the layer that has one tensor scale
  std::vector<std::byte> codes, scales, zero_points;
};

// How many blocks `rows` of them have; of a weight with one scale, each row is a block.
std::uint64_t blocks_of_rows(const block::WeightLayout& layout, std::uint64_t rows) {
  if (layout.is_per_tensor()) return rows;
  const std::uint64_t of_row =
      layout.is_gguf() ? layout.columns / block_size(layout.recipe->gguf).elements : layout.grid_columns;
  return ceil_div(rows, layout.band_rows) * of_row;
}

// A recipe refuses NaN or infinity if its tool leaves undefined what becomes of it: then it makes no bytes.
bool is_refusal(const Error& error) noexcept { return error.code == ErrorCode::out_of_range; }

bool same_number(float a, float b) noexcept { return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

// A recipe with its options, and buffers for what it makes of a band.
class Trial {
 public:
  Trial(block::SharedLayout layout, RecipeTrial& outcome) : layout_(std::move(layout)), outcome_(&outcome) {}

  [[nodiscard]] DType compute_dtype() const noexcept { return outcome_->compute_dtype; }
  [[nodiscard]] const block::WeightLayout& layout() const noexcept { return *layout_; }
  [[nodiscard]] block::SharedLayout shared_layout() const noexcept { return layout_; }
  [[nodiscard]] bool shares_maximum() const noexcept { return outcome_->shared_maximum; }
  [[nodiscard]] bool fits() const noexcept { return outcome_->fits(); }

  void begin(float largest, float stored_global, GlobalScale stored) {
    quantizer_.emplace(layout_, largest);
    const std::optional<float> global = quantizer_->global_scale();
    if (stored == GlobalScale::none && !global) return;
    // Recipes without a tensor scale have scale 1 in spellings that store one.
    float made = global.value_or(1.0f);
    const bool is_divisor = layout_->tensor.coding.global == GlobalScale::divisor;
    const bool inverts = global && stored != GlobalScale::none && (stored == GlobalScale::divisor) != is_divisor;
    if (inverts) made = 1.0f / made;
    if (!same_number(made, stored_global)) outcome_->tensor_scale_differs = true;
  }

  // Compares a band; `differs` has a mark for each of its blocks.
  Result<void> compare(const StoredRows& stored, DType scales_type, std::span<const std::byte> numbers,
                       const Execution& execution, std::vector<std::uint8_t>& differs) {
    if (Result<void> made = quantizer_->run(stored.first, stored.count, numbers.data(), made_, execution); !made) {
      if (!is_refusal(made.error())) return std::move(made).error();
      differs.assign(differs.size(), 1);
      outcome_->differing_blocks += differs.size();
      return {};
    }
    compare_codes(stored, differs);
    TRY(compare_scales(stored, scales_type, differs));
    for (const std::uint8_t mark : differs) outcome_->differing_blocks += mark;
    return {};
  }

 private:
  void compare_codes(const StoredRows& stored, std::vector<std::uint8_t>& differs) {
    const std::size_t row_bytes = layout_->codes_row_bytes;
    const bool is_gguf = layout_->is_gguf();
    const std::size_t width = is_gguf ? row_bytes : layout_->columns;  // bytes of a row, as compared
    const std::size_t step = is_gguf ? block_size(layout_->recipe->gguf).bytes : layout_->block_columns;
    if (width == 0) return;  // rows without columns have no codes
    row_.resize(width);
    for (std::uint64_t row = 0; row < stored.count; ++row) {
      const std::byte* made = made_.codes.data() + row * row_bytes;
      if (!is_gguf && made_.coding.bits != 8) {
        block::unpack_codes(made_.coding, made, {reinterpret_cast<std::uint8_t*>(row_.data()), width});
        made = row_.data();
      }
      const std::byte* const wanted = stored.codes.data() + row * width;
      if (std::memcmp(made, wanted, width) == 0) continue;
      const std::size_t at = row / layout_->band_rows * ceil_div(width, step);
      for (std::size_t i = 0; i < width; i += step) {
        if (std::memcmp(made + i, wanted + i, std::min(step, width - i)) != 0) differs[at + i / step] = 1;
      }
    }
  }

  Result<void> compare_scales(const StoredRows& stored, DType type, std::vector<std::uint8_t>& differs) {
    if (made_.scales.empty()) return {};
    std::span<const std::byte> made = made_.scales;
    if (made_.scales_dtype != type) {
      const Shape& shape = made_.scales_shape;
      converted_.resize(storage_bytes(type, static_cast<std::size_t>(shape[0])));
      TRY(cast({made_.scales_dtype, shape, made_.scales}, {type, shape, converted_}));
      made = converted_;
    }
    const std::size_t size = storage_bytes(type, 1);
    if (layout_->is_per_tensor()) {
      if (std::memcmp(made.data(), stored.scales.data(), size) != 0) outcome_->tensor_scale_differs = true;
      return {};
    }
    for (std::size_t i = 0; i < differs.size(); ++i) {
      if (std::memcmp(made.data() + i * size, stored.scales.data() + i * size, size) != 0) differs[i] = 1;
      const bool has_zeros = !made_.zero_points.empty();
      if (has_zeros && static_cast<std::byte>(made_.zero_points[i]) != stored.zero_points[i]) differs[i] = 1;
    }
    return {};
  }

  block::SharedLayout layout_;
  std::optional<block::Quantizer> quantizer_;  // after begin()
  RecipeTrial* outcome_;
  QuantizedTensor made_;
  std::vector<std::byte> converted_, row_;
};

class Trials {
 public:
  Trials(PartReader& reader, LayerContent content, const OriginalWeight& original, const Execution& execution,
         const std::function<bool(std::uint64_t)>& advance, LayerRecipes& found)
      : reader_(reader),
        content_(std::move(content)),
        original_(original),
        execution_(execution),
        advance_(advance),
        found_(found) {}

  Result<void> run(bool is_raw) {
    is_raw_ = is_raw;
    const RecordedRecipes* const recorded = original_.recorded;
    if (recorded != nullptr && recorded->names(found_.scheme)) recorded_ = recorded;
    if (recorded_ != nullptr) clip_ = recorded_->options.clip;
    if (Result<void> ready = prepare(); !ready || !found_.problem.empty()) return ready;
    Result<void> done = run_parts();
    found_.trials = std::move(outcomes_);
    if (!done || recorded_ != nullptr || std::ranges::any_of(found_.trials, &RecipeTrial::fits)) return done;
    // Searched scales are tried last, and each trial until a block differs.
    clip_ = Clip::mse;
    is_second_ = true;
    add_trials();
    if (trials_.empty()) return {};
    set_chunk_rows(first_searched_elements);
    done = run_parts();
    for (RecipeTrial& trial : outcomes_) {
      if (trial.fits()) found_.trials.push_back(std::move(trial));
    }
    return done;
  }

 private:
  Result<void> prepare() {
    if (!is_raw_) codes_ = TRY(RespelledCodes::create(reader_, content_, {}));
    parts_ = content_.coding.global != GlobalScale::none && content_.globals > 1 ? content_.globals : 1;
    if (const std::optional<std::size_t> global = reader_.find(PartRole::global_scale)) {
      globals_ = TRY(reader_.all_numbers(*global, std::uint64_t{1} << 20));
    }
    add_trials();
    if (trials_.empty()) {
      found_.problem = fmt::format("no recipe makes {} with such blocks", found_.scheme);
      return {};
    }
    layout_ = trials_.front().shared_layout();
    rows_ = content_.rows() / parts_;
    set_chunk_rows(band_elements);
    return {};
  }

  void set_chunk_rows(std::uint64_t elements) {
    const std::uint64_t rows = std::max<std::uint64_t>(elements / std::max<std::uint64_t>(layout_->columns, 1), 1);
    chunk_rows_ = ceil_div(rows, layout_->band_rows) * layout_->band_rows;
  }

  Result<void> run_parts() {
    for (std::uint64_t part = 0; part < parts_ && !trials_.empty(); ++part) TRY(run_part(part));
    return {};
  }

  [[nodiscard]] Shape part_shape() const {
    std::vector<std::int64_t> sizes = content_.shape;
    if (parts_ > 1) sizes.erase(sizes.begin(), sizes.end() - 2);
    return Shape(sizes);
  }

  void add_trials() {
    std::vector<DType> dtypes = {original_.dtype};
    for (const DType other : {DType::float32, DType::bfloat16, DType::float16}) {
      // ConvRot rotates weights in their own type.
      if (other != original_.dtype && content_.deviations.rotation == 0) dtypes.push_back(other);
    }
    const auto all = quantize_recipes();
    const QuantizeRecipe* const first = find_quantize_recipe(found_.scheme);
    const bool has_powers = has_option(block::RecipeOption::power_of_two);
    std::vector<block::SharedLayout> layouts;
    trials_.clear();
    outcomes_.clear();
    for (const QuantizeRecipe& recipe : all) {
      if (recipe.scheme != found_.scheme) continue;
      for (const DType dtype : dtypes) {
        // To float32 nothing is rounded, so only steps in that type could differ.
        if (dtype == DType::float32 && dtype != original_.dtype && !recipe.uses_weights_dtype) continue;
        if (recorded_ != nullptr && !is_recorded(recipe, dtype)) continue;
        for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7}) {
          const bool is_default = (choice & 1) != 0, power = (choice & 2) != 0, weighs = (choice & 4) != 0;
          if (is_default && (&recipe != first || is_raw_)) continue;
          if (weighs && !can_weigh()) continue;
          if (recorded_ != nullptr && !is_recorded(power, weighs)) continue;
          if (power && !has_powers) continue;
          if (!power && content_.scales() == DType::float8_e8m0fnu && has_powers) continue;
          QuantizeOptions options = options_of(dtype, power);
          options.recipe = is_default ? std::string_view() : recipe.recipe;
          const block::SharedLayout layout = make(options, weighs);
          if (layout == nullptr) continue;
          options.recipe = recipe.recipe;
          for (const bool shared : {false, true}) {
            if (shared && (!layout->needs_maximum() || parts_ > 1 || !original_.joined_maximum)) continue;
            outcomes_.push_back({options, shared, weighs, 0, false});
            layouts.push_back(layout);
          }
        }
      }
    }
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      trials_.emplace_back(std::move(layouts[i]), outcomes_[i]);
    }
  }

  // Whether the scheme, of which there are recipes, has an option.
  [[nodiscard]] bool has_option(block::RecipeOption option) const {
    return block::recipe_of(*find_quantize_recipe(found_.scheme)).option == option;
  }

  // Whether the recipe, computed in this type, is the recorded one.
  [[nodiscard]] bool is_recorded(const QuantizeRecipe& recipe, DType dtype) const {
    DType wanted =
        recorded_->options.compute_dtype == DType::undefined ? original_.dtype : recorded_->options.compute_dtype;
    if (wanted == DType::float32 && !recipe.uses_weights_dtype) wanted = original_.dtype;
    const std::string name = fmt::format("{}:{}", recipe.scheme, recipe.recipe);
    return dtype == wanted && std::ranges::find(recorded_->recipes, name) != recorded_->recipes.end();
  }

  [[nodiscard]] bool is_recorded(bool power, bool weighs) const {
    return power == (recorded_->options.power_of_two_scales && has_option(block::RecipeOption::power_of_two)) &&
           weighs == (recorded_->weighs && can_weigh());
  }

  // Whether the importance changes a trial's bytes.
  [[nodiscard]] bool can_weigh() const {
    if (original_.importance.empty() || parts_ > 1) return false;
    return clip_ != Clip::none || (is_raw_ && block::weighs_importance(block::gguf_block_of(found_.scheme)));
  }

  // Returns the options of a trial, but for its recipe.
  [[nodiscard]] QuantizeOptions options_of(DType dtype, bool power) const {
    return {.group_size = has_option(block::RecipeOption::group) ? content_.block_columns : 0,
            .symmetric = !content_.zero_points,
            .power_of_two_scales = power,
            .compute_dtype = dtype,
            .nonfinite = NonFiniteWeights::tool,
            .clip = clip_};
  }

  // Null: the recipe does not have the layer's blocks.
  [[nodiscard]] block::SharedLayout make(QuantizeOptions options, bool weighs) const {
    if (weighs) options.importance = original_.importance;
    const auto gguf = is_raw_ ? block::gguf_block_of(found_.scheme) : tensorcast::GgufBlock::none;
    Result<block::SharedLayout> made =
        block::WeightLayout::make(original_.dtype, part_shape(), found_.scheme, options, gguf);
    if (!made) return nullptr;
    if (is_raw_) return *std::move(made);
    const QuantizedTensor& layout = (*made)->tensor;
    const auto columns = static_cast<std::int64_t>(content_.columns());
    const auto width = [&](std::int64_t block) { return block == 0 ? columns : block; };
    const bool same = layout.block_rows == content_.block_rows &&
                      (layout.block_rows == 0 || width(layout.block_columns) == width(content_.block_columns)) &&
                      layout.coding.bits == content_.coding.bits;
    return same ? *std::move(made) : nullptr;
  }

  Result<void> read_rows(OriginalRows& rows, std::uint64_t first, std::uint64_t count,
                         std::vector<std::byte>& numbers) {
    if (Result<void> got = rows.read(first, count, numbers); !got || content_.deviations.rotation == 0) return got;
    return rotate_groups(original_.dtype, original_.dtype, content_.deviations.rotation, numbers);
  }

  Result<void> run_part(std::uint64_t part) {
    const std::uint64_t first_row = part * rows_;
    OriginalRows rows(original_.dtype, reader_.layer(), layout_->columns, original_.read);
    std::vector<std::byte> numbers;
    std::vector<std::pair<DType, float>> largest;
    for (const Trial& trial : trials_) largest.emplace_back(trial.compute_dtype(), 0.0f);
    for (std::uint64_t row = 0; row < rows_; row += chunk_rows_) {
      const std::uint64_t count = std::min(chunk_rows_, rows_ - row);
      TRY(read_rows(rows, first_row + row, count, numbers));
      for (std::size_t i = 0; i < trials_.size(); ++i) {
        const auto same = std::find_if(largest.begin(), largest.end(),
                                       [&](const auto& seen) { return seen.first == trials_[i].compute_dtype(); });
        if (same != largest.begin() + static_cast<std::ptrdiff_t>(i)) continue;
        Result<float> most = trials_[i].layout().numbers.maximum(numbers.data(), count * layout_->columns, execution_);
        if (!most && !is_refusal(most.error())) return std::move(most).error();
        // NaN stays, as it does in the recipes.
        const float here = most ? *most : std::numeric_limits<float>::quiet_NaN();
        if (here > largest[i].second || here != here) largest[i].second = here;
      }
      TRY(advance(numbers.size()));
    }
    // Without a stored one, a tensor scale of 1 changes nothing.
    const float global = globals_.empty() ? 1.0f : globals_[std::min<std::size_t>(part, globals_.size() - 1)];
    for (Trial& trial : trials_) {
      float most = std::find_if(largest.begin(), largest.end(), [&](const auto& seen) {
                     return seen.first == trial.compute_dtype();
                   })->second;
      if (trial.shares_maximum()) {
        const std::optional<float> joined = TRY(original_.joined_maximum(trial.compute_dtype()));
        if (joined) most = *joined;
      }
      trial.begin(most, global, content_.coding.global);
    }
    for (std::uint64_t row = 0; row < rows_;) {
      // Chunks end where matrices do, as blocks of rows begin there anew.
      const std::uint64_t in_matrix = row % layout_->matrix_rows;
      const std::uint64_t left = layout_->band_rows == 1 ? rows_ - row : layout_->matrix_rows - in_matrix;
      const std::uint64_t count = std::min(chunk_rows_, left);
      TRY(read_rows(rows, first_row + row, count, numbers));
      TRY(run_band(first_row, row, count, numbers));
      TRY(advance(numbers.size()));
      row += count;
      if (!is_second_) continue;
      std::erase_if(trials_, [](const Trial& trial) { return !trial.fits(); });
      if (trials_.empty()) return {};
      set_chunk_rows(band_elements);
    }
    return {};
  }

  // Work that repeats is not counted.
  Result<void> advance(std::uint64_t bytes) {
    if (advance_(is_second_ ? 0 : bytes)) return {};
    return cancelled("cancelled");
  }

  Result<void> load(std::uint64_t first_row, std::uint64_t row, std::uint64_t count) {
    stored_.first = row;
    stored_.count = count;
    if (is_raw_) {
      const std::uint64_t row_bytes = layout_->codes_row_bytes;
      stored_.codes.resize(count * row_bytes);
      return reader_.bytes(0, (first_row + row) * row_bytes, stored_.codes);
    }
    stored_.codes.resize(count * layout_->columns);
    TRY(codes_->codes(first_row + row, stored_.codes));
    const bool is_per_tensor = layout_->is_per_tensor();
    const std::uint64_t grid_row = is_per_tensor ? 0 : layout_->band_of(first_row + row);
    const std::uint64_t grid = is_per_tensor ? 1 : blocks_of_rows(*layout_, count);
    stored_.scales.resize(grid * storage_bytes(content_.scales(), 1));
    TRY(codes_->scales(grid_row, stored_.scales));
    if (!content_.zero_points) return {};
    stored_.zero_points.resize(count * layout_->grid_columns);
    return codes_->zero_points(row, stored_.zero_points);
  }

  Result<void> run_band(std::uint64_t first_row, std::uint64_t row, std::uint64_t count,
                        std::span<const std::byte> numbers) {
    TRY(load(first_row, row, count));
    const std::size_t blocks = blocks_of_rows(*layout_, count);
    std::vector<std::vector<std::uint8_t>> differs(trials_.size(), std::vector<std::uint8_t>(blocks));
    const Execution here{.threads = 1};
    const bool in_turn = clip_ != Clip::none && trials_.size() <= few_trials;
    TRY(try_tasks(trials_.size(), in_turn ? here : execution_, [&](std::size_t i) {
      return trials_[i].compare(stored_, content_.scales(), numbers, in_turn ? execution_ : here, differs[i]);
    }));
    if (is_second_) return {};
    found_.blocks += blocks;
    for (std::size_t block = 0; block < blocks; ++block) {
      const bool decides = std::ranges::any_of(differs, [&](const auto& marks) { return marks[block] != 0; });
      found_.deciding_blocks += decides ? 1 : 0;
    }
    return {};
  }

  PartReader& reader_;
  LayerContent content_;
  const OriginalWeight& original_;
  const Execution& execution_;
  const std::function<bool(std::uint64_t)>& advance_;
  LayerRecipes& found_;
  bool is_raw_ = false;
  std::uint64_t parts_ = 1;  // with a tensor scale each
  std::unique_ptr<LayerCodes> codes_;
  std::vector<float> globals_;
  block::SharedLayout layout_;                 // of the first trial: all have the layer's blocks
  std::uint64_t rows_ = 0;                     // of a part
  std::uint64_t chunk_rows_ = 1;               // that are compared at once: whole blocks
  const RecordedRecipes* recorded_ = nullptr;  // null: all recipes are tried
  Clip clip_ = Clip::none;                     // of the trials
  bool is_second_ = false;                     // the trials that come if no other fits
  std::vector<RecipeTrial> outcomes_;
  std::vector<Trial> trials_;
  StoredRows stored_;
};

}  // namespace

bool RecordedRecipes::names(std::string_view scheme) const {
  return std::ranges::any_of(recipes, [&](const std::string& recipe) {
    return recipe.size() > scheme.size() && recipe.starts_with(scheme) && recipe[scheme.size()] == ':';
  });
}

std::string scheme_of_recipes(const Layer& layer) {
  struct Row {
    std::string_view scheme;
    DType element;
    std::string_view of_recipes;
  };
  constexpr Row rows[] = {{"mxfp8", DType::float8_e5m2, "mxfp8-e5m2"},  {"mxfp6", DType::float6_e3m2fn, "mxfp6-e3m2"},
                          {"int4-channel", DType::uint8, "int4-group"}, {"int4-channel", DType::int8, "int4-group"},
                          {"gptq-4bit", DType::uint8, "int4-group"},    {"awq-4bit", DType::uint8, "int4-group"}};
  const auto* const row = std::ranges::find_if(
      rows, [&](const Row& each) { return each.scheme == layer.scheme && each.element == layer.coding.element; });
  const std::string_view scheme = row == std::ranges::end(rows) ? layer.scheme : row->of_recipes;
  return std::string(find_quantize_recipe(scheme) == nullptr ? "" : scheme);
}

Result<void> try_recipes(PartReader reader, const OriginalWeight& original, const Execution& execution,
                         const std::function<bool(std::uint64_t bytes)>& advance, LayerRecipes& found) {
  found.scheme = scheme_of_recipes(reader.layer());
  if (found.scheme.empty()) {
    found.scheme = reader.layer().scheme;
    found.problem = fmt::format("no recipe makes {}", found.scheme);
    return {};
  }
  Result<LayerContent> content = stored_content(reader.layer(), reader.infos());
  if (const Result<void> ordered = check_order(reader); !ordered) content = ordered.error();
  if (content && content->zero_points && is_in_columns(reader.layer().coding)) {
    const std::unique_ptr<LayerCodes> codes = TRY(RespelledCodes::create(reader, *content, {}));
    content->zero_points = !TRY(is_symmetric(*codes, *content));
  }
  // GGUF's other blocks are compared as they are.
  const bool is_raw = !content && reader.layer().coding.packing == BlockPacking::gguf;
  if (!content && !is_raw) {
    found.problem = content.error().message;
    return {};
  }
  if (is_raw) {
    content = LayerContent{};
    content->name = found.name;
    content->scheme = found.scheme;
    content->shape = reader.layer().shape;
  }
  return Trials(reader, *std::move(content), original, execution, advance, found).run(is_raw);
}

}  // namespace tensorcast::quantized
