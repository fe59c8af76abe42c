// Whole files: convert every tensor of one, or list what is inside.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/cast.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {

// What a raw file does not say about itself.
struct RawLayout {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape;
};

// "tensors whose name matches `pattern` become `to`". A pattern is a regular expression in RE2's syntax (no
// backreferences, no lookaround) of at most 1000 bytes; it may match any part of the name.
struct ConvertRule {
  std::string pattern;
  DType to = DType::undefined;
};

// Errors: invalid_argument, with what is wrong in the pattern.
[[nodiscard]] TENSORCAST_API Result<void> check_pattern(const std::string& pattern);

struct Progress {
  std::uint64_t bytes_done = 0;  // read and written
  std::uint64_t bytes_total = 0;
  std::string_view tensor;  // the one being converted
};

struct ConvertRequest {
  std::string input;
  std::string output;
  DType to = DType::undefined;       // for floating-point tensors that no rule names; undefined: rules only
  CastOptions options;               // threads: 0 = all cores
  std::vector<ConvertRule> rules;    // first match wins; a rule that matches nothing is an error
  std::vector<std::string> include;  // if not empty, only tensors that match one are converted
  std::vector<std::string> exclude;  // tensors that match one are left alone
  std::optional<RawLayout> raw;      // input is raw bytes of this layout
  DType from = DType::undefined;     // npy: the ml_dtypes type behind a `|V1` or `<V2` descriptor
  bool overwrite = false;
  bool dry_run = false;  // plan only; nothing is written
  bool report = false;   // fill TensorOutcome::report
  // Read the output back, before it gets its name: copied tensors must equal the input, converted ones a second
  // conversion, and up to 64 Mi elements, evenly spread where there are more, the reference.
  bool verify = false;
  std::string input_format;                          // "npy", "safetensors", ...; empty: by extension and content
  std::string output_format;                         // the same; empty: by extension
  std::function<bool(const Progress&)> on_progress;  // called now and then; returning false cancels
};

struct TensorOutcome {
  std::string name;
  DType from = DType::undefined;
  DType to = DType::undefined;  // equal to `from`: copied byte for byte
  std::vector<std::int64_t> shape;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::string reason;  // why: "--to", "rule 2", "excluded", "integer", ...
  std::optional<CastReport> report;
};

struct ConvertOutcome {
  std::string input_format;
  std::string output_format;
  std::vector<TensorOutcome> tensors;  // in file order
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  bool verified = false;
  bool cancelled = false;
};

// Converts `request.input` to `request.output`. The output appears under its name only when it is complete and
// synced; on any error, cancellation or crash nothing is left and an old file stays as it was. Output may equal input.
// Memory is bounded: about 64 MiB plus the headers, whatever the size of the file.
// Errors: io, parse (hostile or damaged input), unsupported (the format cannot carry a type; names those that can),
//         out_of_range, invalid_argument. Error::file and Error::tensor say where.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert_file(const ConvertRequest& request);

struct TensorSummary {
  std::string name;
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::string foreign_dtype = {};  // the file's own name of a type that has no DType; dtype is undefined
};

struct FileSummary {
  std::string format;
  std::vector<TensorSummary> tensors;  // in file order
  std::vector<std::pair<std::string, std::string>> metadata;
};

// What is inside a file, without reading its data.
[[nodiscard]] TENSORCAST_API Result<FileSummary> inspect_file(const std::string& path,
                                                              const std::optional<RawLayout>& raw = {},
                                                              DType from = DType::undefined);

struct TensorStats {
  std::uint64_t count = 0, nan = 0, infinite = 0, zero = 0, negative = 0;
  double min = 0.0, max = 0.0, smallest_nonzero_magnitude = 0.0;  // over finite elements
  std::vector<std::pair<DType, CastReport>> candidates;           // how each of the asked-for types would fare
};

// Reads one tensor of a file in blocks and sums it up.
[[nodiscard]] TENSORCAST_API Result<TensorStats> tensor_stats(const std::string& path, const std::string& tensor,
                                                              std::span<const DType> candidates,
                                                              const CastOptions& options = {},
                                                              const std::optional<RawLayout>& raw = {},
                                                              DType from = DType::undefined);

// The same of several tensors of one file, which is opened once: one result for each name in `tensors`.
// Errors: also those of the first tensor that fails.
[[nodiscard]] TENSORCAST_API Result<std::vector<TensorStats>> file_stats(
    const std::string& path, std::span<const std::string> tensors, std::span<const DType> candidates,
    const CastOptions& options = {}, const std::optional<RawLayout>& raw = {}, DType from = DType::undefined);

// Names of the file formats, e.g. "npy"; and those that can write `dtype`.
[[nodiscard]] TENSORCAST_API std::vector<std::string_view> file_formats();
[[nodiscard]] TENSORCAST_API std::vector<std::string_view> file_formats_for(DType dtype);

}  // namespace tensorcast
