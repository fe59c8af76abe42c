#include "models/onnx/precision/tensor_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "formats/onnx/tensor_proto_reader.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/message_edits.hpp"
#include "models/onnx/message_fields.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::models::onnx::precision {
namespace {

using formats::TensorInfo;
using formats::onnx::Field;
using formats::onnx::TensorProtoReader;

constexpr std::size_t block_elements = std::size_t{1} << 18;
constexpr double mask_limit = -1e9;
constexpr double bound_limit = 1e30;
constexpr std::uint64_t page_bytes = 4096;

// Calls take(first, elements, bytes) for blocks of whole bytes.
template <class Take>
Result<void> each_block(TensorProtoReader& reader, Take take) {
  const TensorInfo& info = reader.tensors().front();
  std::vector<std::byte> block;
  for (std::uint64_t first = 0; first < info.count; first += block_elements) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(block_elements, info.count - first));
    block.resize(storage_bytes(info.dtype, count));
    if (Result<void> got = reader.read(0, storage_bytes(info.dtype, first), block); !got) return got;
    if (Result<void> taken = take(count, std::span<std::byte>(block)); !taken) return taken;
  }
  return {};
}

Result<std::vector<double>> as_doubles(DType dtype, std::size_t count, std::span<const std::byte> bytes) {
  std::vector<double> numbers(count);
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  Result<void> done = cast(TensorView{dtype, shape, bytes},
                           MutableTensorView{DType::float64, shape, std::as_writable_bytes(std::span(numbers))});
  if (!done) return std::move(done).error();
  return numbers;
}

// The largest finite number instead of an infinity that a finite number became: one code below.
Result<void> clamp_block(DType from, std::span<const std::byte> src, DType to, std::span<std::byte> dst,
                         std::size_t count) {
  const Result<std::vector<double>> before = as_doubles(from, count, src);
  if (!before) return before.error();
  const Result<std::vector<double>> after = as_doubles(to, count, dst);
  if (!after) return after.error();
  const std::size_t width = dst.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isinf((*after)[i]) || !std::isfinite((*before)[i])) continue;
    std::uint64_t code = 0;
    std::memcpy(&code, dst.data() + i * width, width);
    --code;
    std::memcpy(dst.data() + i * width, &code, width);
  }
  return {};
}

Result<void> stream_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, const TensorChange& change,
                           io::OutputFile& target) {
  auto reader = TensorProtoReader::open(file, tensor);
  if (!reader) return std::move(reader).error();
  const DType from = (*reader)->tensors().front().dtype;
  const DType to = change.to == DType::undefined ? from : change.to;
  std::vector<std::byte> converted;
  return each_block(**reader, [&](std::size_t count, std::span<std::byte> src) -> Result<void> {
    if (from == to) return target.append(src);
    converted.resize(storage_bytes(to, count));
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    Result<void> done = cast(TensorView{from, shape, src}, MutableTensorView{to, shape, converted});
    if (done && change.clamp) done = clamp_block(from, src, to, converted, count);
    return done ? target.append(converted) : done;
  });
}

std::string entry(std::string_view key, std::string_view value) {
  return encode_field(static_cast<std::uint32_t>(Field::external_data), encode_field(1, key) + encode_field(2, value));
}

bool holds_data(Field field) {
  switch (field) {
    case Field::float_data:
    case Field::int32_data:
    case Field::string_data:
    case Field::int64_data:
    case Field::raw_data:
    case Field::double_data:
    case Field::uint64_data:
    case Field::external_data:
    case Field::data_location:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<NumberSurvey> survey_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, DType to) {
  auto reader = TensorProtoReader::open(file, tensor);
  if (!reader) return std::move(reader).error();
  const DType from = (*reader)->tensors().front().dtype;
  NumberSurvey survey{.count = (*reader)->tensors().front().count};
  std::vector<std::byte> converted;
  Result<void> done = each_block(**reader, [&](std::size_t count, std::span<std::byte> src) -> Result<void> {
    converted.resize(storage_bytes(to, count));
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    CastReport report;
    Result<void> cast_done = cast(TensorView{from, shape, src}, MutableTensorView{to, shape, converted}, {}, report);
    if (!cast_done) return cast_done;
    survey.vanishing += report.underflowed_to_zero;
    if (report.overflowed + report.saturated == 0) return {};
    const Result<std::vector<double>> before = as_doubles(from, count, src);
    if (!before) return before.error();
    const double largest = facts(to).largest;
    for (const double number : *before) {
      // Numbers that round back to the largest one count as masks only, which does no harm.
      if (!std::isfinite(number) || std::abs(number) <= largest) continue;
      survey.masks += number <= mask_limit || std::abs(number) > bound_limit ? 1 : 0;
    }
    survey.overflowing += report.overflowed + report.saturated;
    return {};
  });
  if (!done) return std::move(done).error();
  return survey;
}

std::uint64_t ExternalFile::add(std::uint64_t bytes, WireRope::Producer producer) {
  const std::uint64_t unit = bytes >= page_bytes ? page_bytes : 64;  // runtimes map large tensors
  const std::uint64_t padding = (unit - contents_.size() % unit) % unit;
  contents_.text(std::string(padding, '\0'));
  const std::uint64_t offset = contents_.size();
  contents_.produce(bytes, std::move(producer));
  return offset;
}

Result<WireRope> convert_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, const TensorChange& change,
                                ExternalFile* external) {
  const auto reader = TensorProtoReader::open(file, tensor);
  if (!reader) return reader.error();
  const TensorInfo& info = (*reader)->tensors().front();
  const DType to = change.to == DType::undefined ? info.dtype : change.to;
  const std::uint64_t bytes = storage_bytes(to, info.count);
  if (bytes == SIZE_MAX) {
    return Error{.code = ErrorCode::unsupported, .message = "the tensor would be too large", .tensor = info.name};
  }

  WireRope rope;
  WireReader wire(file, tensor.offset, tensor.offset + tensor.length);
  Result<void> copied = each_field(wire, [&](const WireField& field) -> Result<void> {
    const auto number = static_cast<Field>(field.number);
    if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
    if (holds_data(number)) return {};
    if (number == Field::data_type) {
      rope.text(encode_varint_field(field.number, static_cast<std::uint64_t>(to)));
    } else if (number == Field::name && !change.name.empty()) {
      rope.text(encode_field(field.number, change.name));
    } else {
      rope.copy(field.begin, wire.position());
    }
    return {};
  });
  if (!copied) return std::move(copied).error();

  const auto produce = [&file, tensor, change](io::OutputFile& target) {
    return stream_tensor(file, tensor, change, target);
  };
  if (external == nullptr || bytes == 0) {
    WireRope data;
    data.produce(bytes, produce);
    rope.message(static_cast<std::uint32_t>(Field::raw_data), std::move(data));
    return rope;
  }
  const std::uint64_t offset = external->add(bytes, produce);
  rope.text(entry("location", external->location()) + entry("offset", fmt::format("{}", offset)) +
            entry("length", fmt::format("{}", bytes)) +
            encode_varint_field(static_cast<std::uint32_t>(Field::data_location), formats::onnx::external_location));
  return rope;
}

}  // namespace tensorcast::models::onnx::precision
