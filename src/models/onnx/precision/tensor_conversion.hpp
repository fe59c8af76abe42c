// SPDX-License-Identifier: Apache-2.0
// Surveys the elements of a TensorProto before a conversion, and converts them while they are written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "models/onnx/ir/fresh_names.hpp"
#include "models/onnx/precision/weight_quantization.hpp"
#include "models/onnx/wire/wire_rope.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {

struct TensorChange {
  DType to = DType::undefined;                            // undefined: the type stays
  bool clamp = false;                                     // finite numbers stay finite
  std::string name = {};                                  // empty: the name stays
  double min_positive = 0.0;                              // smaller numbers other than 0 become it; 0: no limit
  double max_finite = 0.0;                                // finite numbers beyond it become it; 0: no limit
  std::shared_ptr<const Quantization> quantization = {};  // to codes

  [[nodiscard]] bool has_limits() const noexcept { return min_positive > 0.0 || max_finite > 0.0; }
};

struct TensorNumbers {
  std::uint64_t overflowing = 0;
  std::uint64_t masks = 0;      // of those: -1e9 and below, or beyond 1e30
  std::uint64_t vanishing = 0;  // become zero
  std::uint64_t subnormal = 0;  // become nonzero with fewer digits than the type has
  std::uint64_t tiny = 0;       // of those: with five or fewer bits
  std::uint64_t nan_made = 0;
  std::uint64_t nonzero = 0;  // before
  std::uint64_t count = 0;
};

// Surveys numbers that are in memory.
[[nodiscard]] Result<TensorNumbers> survey_numbers(std::span<const float> numbers, DType to);

// Errors: parse, unsupported, io.
[[nodiscard]] Result<TensorNumbers> survey_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, DType to);

// Calls begin(shape) once, then take(first, numbers) for blocks of elements as float64. Errors: parse, unsupported, io.
[[nodiscard]] Result<void> each_number(const io::InputFile& file, formats::onnx::ByteRange tensor,
                                       const std::function<void(const std::vector<std::int64_t>&)>& begin,
                                       const std::function<void(std::uint64_t, const std::vector<double>&)>& take);

// Applies min_positive and max_finite of a change.
void limit_numbers(const TensorChange& change, std::span<double> numbers) noexcept;

// Assigns external tensors to files, which are written after the model is known to be complete.
class ExternalFiles {
 public:
  struct File {
    std::string location;  // relative to the model
    WireRope contents;
    bool is_copy = false;  // of a file that tensors name already, so that it keeps its name
  };
  struct Place {
    std::string location;
    std::uint64_t offset = 0;
  };

  // All tensors go to one file, "MODEL.data", unless each has its own, "MODEL.TENSOR.data", or each old file a new one,
  // "MODEL.FILE.data".
  struct Layout {
    std::string model_name;     // that of the file without folders
    std::string old_name = {};  // the same of the old model
    bool per_tensor = false;
    bool per_old_file = false;
    std::uint64_t alignment = 4096;                 // of tensors that are not smaller; a power of two
    std::map<std::string, std::string> names = {};  // other locations for files whose own are taken
  };
  explicit ExternalFiles(Layout layout) : layout_(std::move(layout)) {}

  // `origin`: the external file that held the tensor; empty if the model did.
  [[nodiscard]] Place add(const std::string& tensor, const std::string& origin, std::uint64_t bytes,
                          WireRope::Producer producer);
  // Adds a file of its own, for tensors that name it already.
  void add_file(std::string location, std::uint64_t bytes, WireRope::Producer producer);
  [[nodiscard]] const std::vector<File>& files() const noexcept { return files_; }

 private:
  [[nodiscard]] std::string new_location(const std::string& word);

  Layout layout_;
  std::vector<File> files_;
  std::map<std::string, std::size_t> by_origin_;  // index in files_
  FreshNames locations_;                          // without ".data"
};

// Returns the contents of the changed TensorProto, whose data is in the message, or in `external` unless it is null.
// `file` outlives the result. Errors: parse, unsupported, io.
[[nodiscard]] Result<WireRope> convert_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor,
                                              const TensorChange& change, ExternalFiles* external);

// Returns the contents of a new TensorProto with the scales, or the zero points, of a quantized weight; in `external`,
// its data is beside that of `tensor`. Errors: as above.
enum class ScalePart : std::uint8_t { scales, zero_points };
[[nodiscard]] Result<WireRope> scales_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, ScalePart part,
                                             const std::string& name,
                                             const std::shared_ptr<const Quantization>& quantization,
                                             ExternalFiles* external);

}  // namespace tensorcast::models::onnx
