// SPDX-License-Identifier: Apache-2.0
// Each tensor's target type and the reason; checked before anything is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "convert/select/reason.hpp"
#include "formats/format.hpp"
#include "quantized/choose/weight_budget.hpp"
#include "quantized/layout/open_input.hpp"
#include "quantized/layout/spelling.hpp"
#include "quantized/rewrite/respelling.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// What a weight becomes that is quantized, as TensorOutcome has it.
struct NewWeight {
  std::string becomes = {};
  DType type = DType::undefined;
  // At its codes alone.
  std::uint64_t bytes = 0;
  std::string scheme = {}, recipe = {}, search = {}, choice = {};
  std::uint64_t elements = 0;
  double bits = 0.0;
  int passes = 0;
};

// What becomes of a tensor. Layers are indices into FoundLayers::layers; in a shard's plan, rows of its table.

// Byte for byte.
struct Copied {
  std::optional<std::size_t> layer = {};  // of codes, or of what decodes them
};

// Its numbers, to the target's type.
struct Converted {
  double scale = 1.0;  // what they are multiplied by
};

// A quantized layer becomes the numbers of its weight. PlannedTensor::source is that of its codes, until a
// ShardConversion sets it; `from` is float32.
struct Decoded {
  std::size_t layer = 0;
  std::string scheme = {};  // "deepseek fp8-block"
  double scale = 1.0;
  std::optional<std::size_t> rounded = {};  // the source of its numbers rounded to the target's type
};

// One of the tensors of a layer that gets another spelling, or of a weight that is quantized.
struct Rewritten {
  std::size_t layer = 0;
  std::size_t place = 0;                              // in WrittenLayer::tensors
  std::shared_ptr<const NewWeight> weight = nullptr;  // null: another spelling of the same numbers
};

struct PlannedTensor {
  formats::TensorInfo target;  // name, type and shape in the output
  std::size_t source = 0;      // its index in the input; of what is made of a layer, in the reader that makes it
  DType from = DType::undefined;
  std::uint64_t bytes_in = 0;
  std::variant<Copied, Converted, Decoded, Rewritten> fate = {};
  Reason reason = {};
  bool left = false;             // a conversion was requested and is not done
  bool quantized = false;        // codes, or what decodes them
  std::string source_name = {};  // its name in the input; empty: that of `target`

  // Null: something else becomes of it.
  [[nodiscard]] const Decoded* decoded() const noexcept { return std::get_if<Decoded>(&fate); }
  [[nodiscard]] const Rewritten* rewritten() const noexcept { return std::get_if<Rewritten>(&fate); }
  [[nodiscard]] const NewWeight* new_weight() const noexcept {
    return rewritten() ? rewritten()->weight.get() : nullptr;
  }
  [[nodiscard]] bool decodes() const noexcept { return decoded() != nullptr; }
  // Reports whether it is of a layer of the output, which is copied or written anew.
  [[nodiscard]] bool in_layer() const noexcept {
    const auto* const copied = std::get_if<Copied>(&fate);
    return rewritten() != nullptr || (copied != nullptr && copied->layer);
  }
  // The layer that is read for it; none: it is read as the input has it.
  [[nodiscard]] std::optional<std::size_t> layer() const noexcept {
    if (decodes()) return decoded()->layer;
    return rewritten() != nullptr ? std::optional(rewritten()->layer) : std::nullopt;
  }
  // Reports whether its numbers are cast; else bytes are copied.
  [[nodiscard]] bool casts() const noexcept {
    return decodes() || std::holds_alternative<Converted>(fate) || (rewritten() != nullptr && from != target.dtype);
  }
  [[nodiscard]] double scale() const noexcept;

  // The name for messages, which is that of the input.
  [[nodiscard]] const std::string& name() const noexcept { return source_name.empty() ? target.name : source_name; }
};

// Returns the options, with the scale of the tensor.
[[nodiscard]] CastOptions options_of(const ConversionSettings& settings, const PlannedTensor& tensor);

// Returns what the plan says of a tensor; the conversion adds its report and damage.
[[nodiscard]] TensorOutcome planned_outcome(const PlannedTensor& tensor);

struct Plan {
  std::vector<PlannedTensor> tensors;      // tensors of the output, in the order of the input
  std::vector<std::size_t> layout;         // indices into `tensors`, in the order of the output's data
  formats::Metadata metadata = {};         // of the output
  std::vector<std::string> warnings = {};  // of tensors that are left out
  quantized::Respelling respelling = {};
  std::vector<quantized::Layer> layers = {};  // those of the input, then weights that are quantized

  [[nodiscard]] std::vector<PlannedTensor*> in_layout();
  [[nodiscard]] std::uint64_t bytes_in() const noexcept;
  [[nodiscard]] std::uint64_t bytes_out() const noexcept;
};

// A model that is planned, whose tensors and scales may be in several files.
struct ModelToPlan {
  std::span<const formats::TensorInfo> tensors;
  formats::Reader* reader = nullptr;              // of `tensors`; null: no layer gets another spelling or scheme
  std::string claim = {};                         // what its files say about its quantization (quantization_claim.hpp)
  std::vector<quantized::ConfigText> texts = {};  // what its files say
  quantized::FoundLayers layers = {};             // those that can be decoded; weights that are quantized become layers
  BudgetMemory* memory = nullptr;                 // keeps the choices of a budget; null: nothing does
  // Set by TensorPlanner::plan(): what layers become that get another spelling or scheme, and sentences about tensors
  // that are left out.
  quantized::Respelling respelling = {};
  std::vector<std::string> warnings = {};
  // Set by plan(), too: why no weight is quantized although the request quantizes. An error, unless other models of the
  // same request have weights that are.
  std::optional<Error> not_quantized = {};
};

// Returns what is opened; it outlives the result.
[[nodiscard]] ModelToPlan model_of(const OpenedInput& input);

// What the metadata of an output say about its quantization.
struct NewDescription {
  bool replaces = false;                              // that of the input is not true any more
  const quantized::WrittenConfig* written = nullptr;  // null: nothing is quantized anew
  bool is_beside = false;                             // a config.json beside the output says it, too
};

// Plans tensors of one or several files against the same patterns, each of which must match a tensor of some file.
class TensorPlanner {
 public:
  // The request and the formats outlive this. Errors: invalid_argument (patterns that are wrong; no type to convert
  // to).
  [[nodiscard]] static Result<std::unique_ptr<TensorPlanner>> create(const ConvertRequest& request,
                                                                     const formats::Format& input_format,
                                                                     const formats::Format& output_format);
  virtual ~TensorPlanner() = default;

  // Plans all tensors of a model, and gives them to `add` one after another: together, those of 50,000 weights that are
  // quantized would take 100 MB. A layer is decoded if its weight is to be converted, or becomes the tensors of its new
  // spelling or scheme; else its tensors are copied. PlannedTensor::source is the index in the model's tensors. Errors:
  // those of make_plan(); of plan_respelling() and plan_quantizing().
  [[nodiscard]] virtual Result<void> plan(ModelToPlan& model, const std::function<void(PlannedTensor)>& add) = 0;
  // The same, all at once.
  [[nodiscard]] Result<std::vector<PlannedTensor>> plan(ModelToPlan& model);
  // To be called after all models. Errors: invalid_argument, naming a pattern that has matched no tensor; unsupported:
  // the output cannot hold so many tensors.
  [[nodiscard]] virtual Result<void> check_all_planned() const = 0;
  // Returns the metadata of a file of the model that was planned last. `inputs`: those of the files that it is made of.
  // Errors: as OutputNames.
  [[nodiscard]] virtual Result<formats::Metadata> metadata_of(const formats::Metadata& inputs,
                                                              const NewDescription& description) = 0;
};

// Plans to convert a file. Errors: invalid_argument (no type to convert to; patterns that are wrong or match nothing;
// options), unsupported (types that the output's format or the opset does not have; quantized tensors that would
// change).
[[nodiscard]] Result<Plan> make_plan(const ConvertRequest& request, const OpenedInput& input,
                                     const formats::Format& output_format);

// Checks the tensors of an output file, and returns the order of their data as indices into `tensors`.
// Errors: unsupported, invalid_argument (the format cannot hold them together).
[[nodiscard]] Result<std::vector<std::size_t>> layout_of(const formats::Format& output,
                                                         std::span<const PlannedTensor> tensors);

}  // namespace tensorcast::file_conversion
