// SPDX-License-Identifier: Apache-2.0
// Component files. Whole files: converts all tensors of a file, or lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

class ByteSource;  // byte_source.hpp

// The type and shape of a raw file, which has no header.
struct RawLayout {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape = {};
};

enum class TensorKind : std::uint8_t;

// "tensors whose name matches `pattern` become `to`". A pattern is a regular expression in RE2's syntax (no
// backreferences, no lookaround) of at most 1000 bytes; it may match any part of the name.
struct ConvertRule {
  std::string pattern = {};
  DType to = DType::undefined;
  std::vector<std::int64_t> ranks = {};  // if not empty: only tensors with one of these numbers of dimensions
  std::uint64_t smaller = 0;             // if not 0: only tensors with fewer elements
  bool keep = false;                     // the tensors stay as they are; `to` is ignored
  std::optional<double> scale = {};      // in the place of options.scale
  std::string scheme = {};               // in the place of `to`: as TensorTargets::scheme
  std::string recipe = {};               // of `scheme`; empty: as TensorTargets::recipe
  std::vector<TensorKind> kinds = {};    // if not empty: only tensors of one of these kinds
};

// The mixtures that ConvertRequest::mix takes.
[[nodiscard]] TENSORCAST_API std::vector<std::string_view> mix_names();

// A type or a scheme, as `--to` and rules name them.
struct ConvertTarget {
  DType to = DType::undefined;  // undefined: a scheme
  std::string scheme = {};
  std::string recipe = {};  // empty: none is named
};
// Parses "bfloat16", or as parse_scheme_candidate(): "nvfp4", "mxfp4:even". Errors: invalid_argument.
[[nodiscard]] TENSORCAST_API Result<ConvertTarget> parse_target(std::string_view text);

// What a tensor is, by its name: the names that common model definitions use.
enum class TensorKind : std::uint8_t {
  embedding,
  attention,
  feed_forward,
  expert,  // feed-forward weights of a mixture of experts
  router,  // chooses the experts
  norm,
  head,  // output head
  convolution,
  state_space,  // A_log and conv1d of Mamba and the like
  scale,        // scales and zero points of quantized weights
  other,
};
[[nodiscard]] TENSORCAST_API TensorKind tensor_kind(std::string_view tensor, std::size_t rank) noexcept;
[[nodiscard]] TENSORCAST_API std::string_view name(TensorKind kind) noexcept;  // "embedding", "feed-forward", ...
// Finds a kind by its name. Errors: invalid_argument, which lists them.
[[nodiscard]] TENSORCAST_API Result<TensorKind> parse_tensor_kind(std::string_view name);
// Whether it is a matrix of a layer: what Preset::weights_only converts.
[[nodiscard]] TENSORCAST_API bool is_layer_matrix(std::string_view tensor, std::size_t rank) noexcept;

// Whether it is such a matrix that QuantizeTargets::scheme quantizes: no convolution, of no vision or audio tower, and
// the "weight" of its module, or experts in one tensor.
[[nodiscard]] TENSORCAST_API bool is_quantized_matrix(std::string_view tensor, std::size_t rank) noexcept;

enum class Preset : std::uint8_t {
  none,
  // `to` is for matrices of layers: no embeddings, no output head, no norms, no routers, no A_log and conv1d of state
  // space models, no vectors.
  weights_only,
};

// "what `pattern` matches in a name becomes `replacement`". Every match is replaced. In the replacement, \1 to \9 are
// the groups of the pattern, \0 is all that it matches, and two backslashes are one.
struct Rename {
  std::string pattern = {};  // as in ConvertRule
  std::string replacement = {};
};

// What of the input is written, and under which names. Patterns match names of the input; one that matches nothing is
// an error.
struct OutputFilter {
  std::vector<std::string> drop = {};  // tensors that match one are not written
  std::vector<std::string> only = {};  // if not empty, only tensors that match one are written
  // Applied one after another. Two tensors of one name are an error. Errors and reports say the input's names.
  std::vector<Rename> rename = {};
  // Of checkpoints: files and folders that match one of these globs are neither read nor copied. `*` and `?` match no
  // slash, `**` does. A glob without a slash is for the names in every folder.
  std::vector<std::string> skip_files = {};
  // Keys of descriptions of quantized weights, and ends of tensors' names beside codes, such as "awq_scale", that are
  // not known and are taken as harmless (default: weights beside which they stand are not decoded).
  std::vector<std::string> accept = {};
};

// Checks a pattern and its replacement. Errors: invalid_argument.
[[nodiscard]] TENSORCAST_API Result<void> check_rename(const Rename& rename);

// Checks a pattern of ConvertRule. Errors: invalid_argument, naming what is wrong in the pattern.
[[nodiscard]] TENSORCAST_API Result<void> check_pattern(const std::string& pattern);

// The types of arrays whose file does not name them: ml_dtypes' types in npy and npz, written as `|V1` or `<V2`. A file
// that says otherwise is an error.
struct SourceTypes {
  DType all = DType::undefined;                           // of every array that is not named below
  std::vector<std::pair<std::string, DType>> named = {};  // array, its type; each must be in the file

  SourceTypes(DType dtype = DType::undefined) : all(dtype) {}
  [[nodiscard]] bool empty() const noexcept { return all == DType::undefined && named.empty(); }
  // The type of an array: the named one, else `all`.
  [[nodiscard]] TENSORCAST_API DType of(std::string_view tensor) const noexcept;
};

// What to do when a conversion destroys a tensor: more than half of the nonzero elements become zero, the signal to
// noise ratio is under 3 dB, an element wraps, overflows to infinity or NaN, or loses a NaN, or more than 1 % of the
// elements saturate. Conversions to bool and from strings are not judged.
enum class OnLoss : std::uint8_t {
  ignore,
  tell,  // fill TensorOutcome::damage; costs as much as a report
  // An error, before the output appears. Stricter: no element may overflow, saturate (also a negative number that
  // becomes 0), or lose a NaN or an infinity, and of the nonzero ones at most `zero_limit` may become zero.
  fail,
};

struct Progress {
  std::uint64_t bytes_done = 0;  // read and written
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_before = 0;  // of bytes_done, those that an earlier run did
  std::string_view tensor = {};    // the one being converted
  std::string_view file = {};      // of a checkpoint: the output file being written, or one of several
  std::size_t shard = 0;           // of a checkpoint: its number, from 1
  std::size_t shards = 0;
};

// Which tensors of the input are converted, and which are written. Patterns are those of ConvertRule; one that matches
// nothing is an error.
struct TensorSelection {
  // If not empty, only tensors that match one are converted. If the output's format has one array only, the tensor that
  // matches is all that is written, converted or not.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};  // tensors that match one are left alone
  // Tensors that no rule names stay as they are if they have one of these numbers of dimensions (0, 1: scalars, biases
  // and the weights of norms), or fewer than `keep_smaller` elements, or if the preset leaves them.
  std::vector<std::int64_t> keep_rank = {};
  std::uint64_t keep_smaller = 0;
  Preset preset = Preset::none;
  OutputFilter filter = {};
};

// Whether weights that loaders join (q, k and v; gate and up) get one scale of the whole tensor.
enum class Fuse : std::uint8_t {
  automatic,  // where the loaders of the spelling want it
  never,
};

// What the configuration says of activations, where the spelling has a choice. No scale of them is calibrated.
enum class Activations : std::uint8_t {
  automatic,  // as the tool of a recipe that is named does; else none
  none,       // they stay as they are
  dynamic,    // they are quantized while the model runs
};

// How weights are quantized.
struct QuantizeTargets {
  // A scheme of quantize_recipes(), such as "nvfp4" or "q4_k", for matrices of layers that no rule names; the output's
  // other tensors stay. Embeddings, heads, norms, routers, convolutions, vectors and vision or audio towers are no such
  // matrices. Layers that are quantized already are decoded first. Empty: nothing is quantized, unless a rule says so.
  std::string scheme = {};
  // Not 0: in the place of `scheme`, the one of `candidates` that is best for each of these matrices, so that the sum
  // of squared errors is small and all weights that become quantized have at most so many bits an element on average,
  // scales included. Weights that rules name a scheme for count, with it. Planning then reads the weights, and measures
  // what each candidate would make of them. Each model of a folder has the whole budget.
  double budget = 0.0;
  std::vector<std::string> candidates = {};  // as parse_scheme_candidate(); empty: default_scheme_candidates()
  std::string recipe = {};                   // the tool whose bytes are made; empty: the scheme's default
  std::string spelling = {};                 // whose names, packing and configuration; empty: those of the scheme
  // Writes also what known loaders of the spelling do not load. Without it, such weights are left as they are if the
  // configuration can say so, else they are an error.
  bool force_layout = false;
  Activations activations = Activations::automatic;
  // Weights are rounded to it first; undefined: their own type, and bfloat16 for layers that are decoded (of GGUF:
  // float32).
  DType compute_dtype = DType::undefined;
  // int4-group: 32, 64 or 128; 0: 128, but 64 or 32 for a weight whose inputs only these divide.
  std::uint64_t group_size = 0;
  bool symmetric = true;  // int4-group: false stores zero points
  // fp8-block: scales are powers of two, which DeepSeek calls ue8m0, in float32. Recipes: deepseek, deepseek-v3.2,
  // deepgemm and transformers.
  bool power_of_two_scales = false;
  Fuse fuse = Fuse::automatic;
  NonFiniteWeights nonfinite = NonFiniteWeights::error;
  Clip clip = Clip::none;
  // Not 0: int8-channel as comfyui. Groups of so many inputs, a power of 4 up to 4096 (256 is usual), are rotated by a
  // Hadamard matrix before they are quantized, which ComfyUI undoes ("convrot").
  std::uint64_t convrot = 0;
  // A file of importance: llama.cpp's importance matrix (GGUF), or safetensors with a tensor for each weight, under its
  // name, of a number for each column, or for each column of each matrix. Squared errors are weighed by it: for
  // `budget`, `clip`, q2_k to q6_k, iq4_nl and iq4_xs. Weights that the file lacks count alike. Empty: none.
  std::string importance = {};
  // A weight that its scheme or the spelling cannot hold, such as one of 250 inputs in groups of 16, is an error, which
  // lists all of them. Else such weights stay as they are, with TypeReason::unfit, unless all of a scheme are such.
  bool strict_schemes = false;
};

// What the tensors become.
struct TensorTargets : QuantizeTargets {
  DType to = DType::undefined;          // for floating-point tensors that no rule names; undefined: rules only
  std::vector<ConvertRule> rules = {};  // first match wins; a rule that matches nothing is an error
  // Converts tensors whose rows would not fill whole bytes, which readers of safetensors do not accept.
  bool allow_odd = false;
  bool raw_codes = false;  // convert codes of quantized weights as plain numbers, and leave their scales
};

// How each tensor is converted, whatever its type.
struct ConversionSettings {
  CastOptions options = {};
  OnLoss on_loss = OnLoss::ignore;
  double zero_limit = 0.01;    // with OnLoss::fail: the share of the nonzero elements of a tensor that may become zero
  bool refuse_wrap = false;    // options.out_of_range = automatic means error if the target is an integer type
  bool refuse_zeroed = false;  // error if over half of the nonzero become zero, or a scheme makes NaN or infinity
  bool report = false;         // fill TensorOutcome::report
  // Not of quantized weights that are decoded, which can then be rounded to their type while they are decoded.
  bool report_casts_only = false;
  // Read the output back, before it gets its name: copied tensors must equal the input, converted ones a second
  // conversion, and up to 64 Mi elements, evenly spread where there are more, the reference.
  bool verify = false;
};

// How a conversion runs.
struct ConversionRun : ConversionSettings {
  Execution execution = {};
  // Called before the output is created, then now and then, and before it gets its name; returning false cancels, which
  // is the error `cancelled`.
  std::function<bool(const Progress&)> on_progress = {};
};

// Where the tensors come from, and where they go.
struct ConversionPlaces {
  std::string input = {};
  std::string output = {};
  std::string input_format = {};      // "npy", "safetensors", ...; empty: by extension and content
  std::string output_format = {};     // the same; empty: by extension
  std::optional<RawLayout> raw = {};  // input is raw bytes of this layout
  SourceTypes from = {};              // npy, npz: the ml_dtypes types behind `|V1` or `<V2` descriptors
  // Not null: the bytes of the input (byte_source.hpp), which is a file; `input` is its name.
  std::shared_ptr<ByteSource> source = {};
  bool overwrite = false;
  bool parents = false;  // create the folders of `output` that do not exist
  bool dry_run = false;  // plan only; nothing is written
  // Of checkpoints only. By default each output shard has the tensors of an input shard.
  std::uint64_t max_shard_bytes = 0;  // not 0: cut anew, in the order of the input, so that no file has more bytes of
                                      // tensors, unless one tensor alone does
  bool single_file = false;           // one file for each model
};

struct ConvertRequest : TensorSelection, TensorTargets, ConversionRun, ConversionPlaces {
  // Not empty: quantized layers get the names, packing and configuration of another spelling, "compressed-tensors",
  // "gptq", "awq" and others of written_spellings(); no type is then converted. What the spelling cannot hold is an
  // error before anything is written.
  std::string respell = {};
  // A mixture of llama-quantize, such as "q4_k_m": from one GGUF file to another, the types that it chooses for the
  // tensors that no rule names; general.file_type is the mixture's. Empty: none.
  std::string mix = {};
  bool exact = false;  // with `respell`: also a scale whose reciprocal is rounded is an error

  ConvertRequest() = default;
  ConvertRequest(std::string from_path, std::string to_path, DType type = DType::undefined) {
    input = std::move(from_path);
    output = std::move(to_path);
    to = type;
  }
};

// Why a tensor has its type in the output.
enum class TypeReason : std::uint8_t {
  to,               // ConvertRequest::to
  rule,             // a rule, whose number TensorOutcome::number is, from 1
  excluded,         // `exclude` names it
  not_included,     // `include` does not
  included,         // `include` names it, and there is no type for it to become
  no_rule,          // no rule names it, and there is no other type to become
  not_floating,     // it is bool, an integer or text, for which only rules are
  foreign,          // only rules are for its file's own type, and they cannot convert it
  rank,             // `keep_rank` names its number of dimensions, which TensorOutcome::number is
  smaller,          // it has fewer elements than `keep_smaller`, which TensorOutcome::number is
  not_a_matrix,     // the preset leaves it
  kind,             // the preset leaves what it is, by its name
  optimizer_state,  // it is left, as rounding would damage it
  decodes_codes,    // it decodes quantized weights
  demanded,         // the output's format wants this type for it
  unaligned,        // it is left, as its rows fill no whole bytes; `allow_odd`
  respelled,        // it is of a quantized layer that gets another spelling
  quantized,        // it is of a weight that is quantized
  kept_float32,     // its model keeps it in float32, whatever type the others have
  not_loaded,       // it is not quantized, as loaders of the spelling would not load it; `force_layout`
  unfit,            // it is left, as its scheme or the spelling cannot hold it; `strict_schemes`
};

// As plans write it: "not_a_matrix".
[[nodiscard]] TENSORCAST_API std::string_view name(TypeReason why) noexcept;

struct TensorOutcome {
  std::string name = {};         // in the input
  std::string output_name = {};  // empty: the same
  DType from = DType::undefined;
  DType to = DType::undefined;  // equal to `from`: copied byte for byte
  std::vector<std::int64_t> shape = {};
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  TypeReason why = TypeReason::to;
  std::uint64_t number = 0;  // of the rule, of dimensions or of elements
  std::string reason =
      {};              // `why` in words: "`to`", "rule 2", "excluded", "integer", ...; backquotes as in Error::hint
  bool left = false;   // a conversion was asked for and not done; `why` says why
  double scale = 1.0;  // what its elements were multiplied by; 1 if it was copied
  std::string damage =
      {};  // what destroyed the tensor, such as "22 of 24 nonzero elements became zero"; empty: nothing did
  std::string remedy = {};  // with `damage`: what would help; backquotes as in Error::hint
  std::optional<CastReport> report = {};
  std::string file = {};  // of a checkpoint: the output file with the tensor, relative to OUT
  // The spelling and scheme that were decoded, such as "deepseek fp8-block"; `from` is then float32. Or, at the codes
  // of a weight that is quantized, its scheme alone: "nvfp4".
  std::string scheme = {};
  // Set for a weight that was quantized, such as "modelopt nvfp4"; `from` is then the weight's type. The entry of the
  // codes has all of its bytes_in; those of its scales have 0.
  std::string becomes = {};
  // Only at the codes of such a weight: its recipe; its elements; the bits of all its tensors for each of them; and,
  // with a budget, why it has its scheme, such as "20.9 dB at 4.5 bits; mxfp4 18.5 dB at 4.25". `report` is there, too:
  // that of the conversion to codes and back, in which `saturated` is as SchemeFit's.
  std::string recipe = {};
  std::string search = {};  // what its scales are searched by: "clip mse", "importance"; empty: the recipe's own
  std::uint64_t elements = 0;
  double bits = 0.0;
  std::string choice = {};
  int passes = 0;  // how often its numbers are read: twice, if its whole tensor has a scale
};

struct ShardOutcome {
  std::string file = {};  // relative to the output folder
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::size_t tensors = 0;
  std::string sha256 = {};   // 64 hexadecimal digits; empty: not converted yet
  bool done_before = false;  // by an earlier run or another process
};

// What of a checkpoint's folder is not in the output.
struct LeftOut {
  std::string name = {};  // relative to the folder; a folder's ends in /
  std::uint64_t bytes = 0;
};

// What a conversion of a checkpoint needs; filled in by a dry run.
struct Requirements {
  double seconds = 0.0;  // measured on the first bytes of the checkpoint; assumes that OUT is as fast
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_free_bytes = 0;
};

struct ConvertOutcome {
  std::string input_format = {};
  std::string output_format = {};
  std::vector<TensorOutcome> tensors = {};  // of the output, in the input's order
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  bool verified = false;
  // OUT.json, with the plain data of a PyTorch checkpoint that are no tensors, such as an optimizer's settings; empty
  // if there are none, or one tensor is extracted. It appears just before the output does.
  std::string other_data = {};
  std::vector<std::string> warnings = {};  // what the output lacks, as sentences: objects that are no tensors
  // The rest is of checkpoints only.
  std::vector<ShardOutcome> shards = {};
  std::vector<std::string> copied_files = {};     // files without tensors
  std::vector<LeftOut> left_out = {};             // .git, .cache and .tcast, and what `skip_files` names
  std::vector<std::string> rewritten_files = {};  // configs and indexes
  std::optional<Requirements> requirements = {};
  bool resumed = false;  // an earlier run had begun the conversion
};

// Checks a request for what no file decides: values, and options that contradict each other or are of use with others
// only. convert_file() begins with it. Errors: invalid_argument, unsupported (a type that nothing is cast to).
[[nodiscard]] TENSORCAST_API Result<void> check_request(const ConvertRequest& request);

// Converts the file `request.input` to `request.output`; convert() of checkpoint.hpp also takes folders. The output
// appears under its name only when it is complete and synced; on any error, cancellation or crash nothing is left and
// an old file stays as it was. Output may equal input. Memory is bounded: about 64 MiB plus the headers, whatever the
// size of the file. Errors: io, parse (malicious or damaged input), unsupported (the format cannot carry a type; names
// those that can),
//         out_of_range, invalid_argument (also patterns without a type to convert to, unless they extract one
//         tensor), cancelled (on_progress returned false). Error::file and Error::tensor say where.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert_file(const ConvertRequest& request);

struct TensorSummary {
  std::string name = {};
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape = {};
  std::uint64_t bytes = 0;
  std::string foreign_dtype = {};  // the file's own name of a type that has no DType; dtype is undefined
  std::string problem = {};        // why the elements cannot be read; empty: they can
};

// A weight of a quantized model: codes, scales and what else belongs to them.
struct QuantizedLayer {
  std::string name = {};                 // of the weight that they decode to
  std::string spelling = {};             // who names and packs tensors so: "deepseek", "compressed-tensors", "gguf"
  std::string scheme = {};               // "fp8-block", "nvfp4", "int4-group"
  std::vector<std::int64_t> shape = {};  // of the weight
  std::int64_t block_rows = 0, block_columns = 0;  // elements of one scale; 0: all
  std::vector<std::string> tensors = {};           // the codes are first
  std::string problem = {};         // why it is not decoded: a contradiction, or a method that is known and not decoded
  std::string problem_tensor = {};  // the tensor that `problem` is about
};

struct FileSummary {
  std::string format = {};
  std::vector<TensorSummary> tensors = {};  // in file order
  std::vector<std::pair<std::string, std::string>> metadata = {};
  std::vector<QuantizedLayer> layers = {};
  std::vector<std::string> warnings = {};  // of what is left out, and of the scales of layers, as sentences
  std::vector<std::string> notes = {};     // of layers, as sentences: negative scales, recipes that are excluded
};

struct InspectRequest {
  std::string input = {};
  std::string input_format = {};  // as in ConvertRequest, like the fields below
  std::optional<RawLayout> raw = {};
  SourceTypes from = {};
};

// Lists the tensors of a file, and its quantized layers. Of the elements, only scales of such layers are read.
// Errors: io, parse, unsupported, invalid_argument (`from` names a tensor or a type that the file does not have).
// Cost: reads the headers, and at most 256 MiB of scales.
[[nodiscard]] TENSORCAST_API Result<FileSummary> inspect(const InspectRequest& request);

// Decides what convert_file() would do with the tensors of one model, without reading or writing: `request.to`, rules,
// include, exclude, keep_rank, keep_smaller, preset, raw_codes and options count; files do not. One outcome for each
// tensor, in order; `bytes` of the summaries is not used. Errors: as convert_file().
[[nodiscard]] TENSORCAST_API Result<std::vector<TensorOutcome>> plan_tensors(const ConvertRequest& request,
                                                                             std::span<const TensorSummary> tensors);

// Finds the indices of the tensors whose name matches one of `patterns`, in file order. Patterns are those of
// ConvertRequest; errors: invalid_argument, for a pattern that is wrong or matches nothing.
[[nodiscard]] TENSORCAST_API Result<std::vector<std::size_t>> matching_tensors(
    const FileSummary& file, const std::vector<std::string>& patterns);

// A scheme to which a weight could be quantized.
struct SchemeCandidate {
  std::string scheme = {};  // of quantize_recipes()
  std::string recipe = {};  // empty: the scheme's default

  friend bool operator==(const SchemeCandidate&, const SchemeCandidate&) = default;
};

// Parses "nvfp4", "mxfp4:even"; `-` and `_` are the same, as are Q4_K and q4_k. Errors: invalid_argument, which lists
// the schemes or recipes.
[[nodiscard]] TENSORCAST_API Result<SchemeCandidate> parse_scheme_candidate(std::string_view text);
// nvfp4, mxfp4, int4-group, mxfp6, mxfp8, fp8-channel.
[[nodiscard]] TENSORCAST_API std::vector<SchemeCandidate> default_scheme_candidates();

// What a weight would be after quantization and decoding to float32.
struct SchemeFit {
  std::string scheme = {}, recipe = {};
  double bits = 0.0;          // of an element, scales and zero points included
  double signal_power = 0.0;  // sum of squares of the elements, times importance if there is one
  double noise_power = 0.0;   // the same of the errors; both sums have nine good digits
  double max_abs_error = 0.0;
  std::uint64_t became_zero = 0;  // elements that were not zero
  std::uint64_t saturated = 0;    // elements that became the largest code of their block, and are larger; not of GGUF
  std::uint64_t scales = 0;       // of blocks
  std::uint64_t lowest_scales = 0,
                highest_scales = 0;  // of these, at a limit of their type; of blocks that are not zero
  std::string problem = {};  // why the rest is zero: NaN or infinity in the weight, rows that are no whole blocks

  // As CastReport::snr_db().
  [[nodiscard]] TENSORCAST_API double snr_db() const noexcept;
};

struct TensorStats {
  std::uint64_t count = 0, nan = 0, infinite = 0, zero = 0, negative = 0;
  double min = 0.0, max = 0.0, smallest_nonzero_magnitude = 0.0;  // over finite elements
  std::vector<std::pair<DType, CastReport>> candidates = {};      // the report of a conversion to each
  std::vector<SchemeFit> schemes = {};                            // of each requested one, if elements are floats
  // With schemes: how many elements have each exponent of float32, from zero and subnormal numbers to NaN and infinity.
  std::vector<std::uint64_t> exponents = {};
};

struct StatsRequest {
  std::string input = {};
  // Their names; one empty name is the only tensor of a file that has one.
  std::vector<std::string> tensors = {};
  std::vector<DType> candidates = {};         // types to convert to for a report
  std::vector<SchemeCandidate> schemes = {};  // to quantize floating-point tensors to, and to decode again
  std::string importance = {};                // of `schemes`: as QuantizeTargets::importance
  CastOptions options = {};
  Execution execution = {};
  std::string input_format = {};  // as in ConvertRequest, like the fields below
  std::optional<RawLayout> raw = {};
  SourceTypes from = {};
};

// Reads tensors of a file in blocks, counts their kinds of numbers, and reports what a conversion to each candidate
// would do: one result for each name in `tensors`. Errors: as inspect() and cast(), those of the first tensor that
// fails; invalid_argument if there is no such tensor, scheme or recipe. Cost: opens the file once and reads each tensor
// once, twice with schemes; memory is bounded. Results do not depend on the number of threads.
[[nodiscard]] TENSORCAST_API Result<std::vector<TensorStats>> tensor_stats(const StatsRequest& request);

// Names of the file formats, e.g. "npy"; and those that can write `dtype`.
[[nodiscard]] TENSORCAST_API std::vector<std::string_view> file_formats();
[[nodiscard]] TENSORCAST_API std::vector<std::string_view> file_formats_for(DType dtype);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
