// The elements of a TensorProto in another type: surveyed before the conversion, converted while they are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "models/onnx/precision/wire_rope.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx::precision {

struct TensorChange {
  DType to = DType::undefined;  // undefined: the type stays
  bool clamp = false;           // finite numbers stay finite
  std::string name = {};        // empty: the name stays
};

struct NumberSurvey {
  std::uint64_t overflowing = 0;
  std::uint64_t masks = 0;  // of those: -1e9 and below, or beyond 1e30
  std::uint64_t vanishing = 0;
  std::uint64_t count = 0;
};

// Errors: parse, unsupported, io.
[[nodiscard]] Result<NumberSurvey> survey_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, DType to);

// Where tensors go that do not stay in the model; the file is written after the model is known to be complete.
class ExternalFile {
 public:
  explicit ExternalFile(std::string location) : location_(std::move(location)) {}

  // Returns the offset of the new data.
  [[nodiscard]] std::uint64_t add(std::uint64_t bytes, WireRope::Producer producer);
  [[nodiscard]] const std::string& location() const noexcept { return location_; }
  [[nodiscard]] bool empty() const noexcept { return contents_.size() == 0; }
  [[nodiscard]] Result<void> write(const io::InputFile& model, io::OutputFile& target) const {
    return contents_.write(model, target);
  }

 private:
  std::string location_;  // relative to the model
  WireRope contents_;
};

// Returns the contents of the changed TensorProto, whose data is in the message, or in `external` unless it is null.
// `file` outlives the result. Errors: parse, unsupported, io.
[[nodiscard]] Result<WireRope> convert_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor,
                                              const TensorChange& change, ExternalFile* external);

}  // namespace tensorcast::models::onnx::precision
