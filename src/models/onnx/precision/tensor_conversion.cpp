// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/tensor_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast::models::onnx {
namespace {

using formats::TensorInfo;
using formats::onnx::Field;
using formats::onnx::TensorProtoReader;

constexpr std::size_t block_elements = std::size_t{1} << 18;
constexpr double mask_limit = -1e9;
constexpr double bound_limit = 1e30;

// Calls take(first, elements, bytes) for blocks of whole bytes.
template <class Take>
Result<void> each_block(TensorProtoReader& reader, Take take) {
  const TensorInfo& info = reader.tensors().front();
  std::vector<std::byte> block;
  for (std::uint64_t first = 0; first < info.count; first += block_elements) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(block_elements, info.count - first));
    block.resize(storage_bytes(info.dtype, count));
    TRY(reader.read(0, storage_bytes(info.dtype, first), block));
    TRY(take(count, std::span<std::byte>(block)));
  }
  return {};
}

Result<std::vector<double>> as_doubles(DType dtype, std::size_t count, std::span<const std::byte> bytes) {
  std::vector<double> numbers(count);
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  TRY(cast(TensorView{dtype, shape, bytes},
           MutableTensorView{DType::float64, shape, std::as_writable_bytes(std::span(numbers))}));
  return numbers;
}

// Replaces an infinity that a finite number became by the largest finite number, whose code is one below.
Result<void> clamp_block(DType from, std::span<const std::byte> src, DType to, std::span<std::byte> dst,
                         std::size_t count) {
  const std::vector<double> before = TRY(as_doubles(from, count, src));
  const std::vector<double> after = TRY(as_doubles(to, count, dst));
  const std::size_t width = dst.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isinf(after[i]) || !std::isfinite(before[i])) continue;
    std::uint64_t code = 0;
    std::memcpy(&code, dst.data() + i * width, width);
    --code;
    std::memcpy(dst.data() + i * width, &code, width);
  }
  return {};
}

// Numbers of a type that are zero, or have fewer digits than the type.
struct SmallNumbers {
  std::uint64_t zeros = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t tiny = 0;
};

constexpr int tiny_bits = 5;

template <class Code>
SmallNumbers count_small_codes(const NumberFacts& type, std::span<const std::byte> bytes) {
  const Code sign = type.has_negative_zero ? static_cast<Code>(Code{1} << (type.bits - 1)) : Code{0};
  const auto mask = static_cast<Code>(~sign);
  const auto normal = static_cast<Code>(Code{1} << type.mantissa_bits);
  const auto tiny = static_cast<Code>(Code{1} << std::min(type.mantissa_bits, tiny_bits));
  SmallNumbers found;
  std::uint64_t below = 0;
  std::uint64_t below_tiny = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof(Code); ++i) {
    Code code;
    std::memcpy(&code, bytes.data() + i * sizeof(Code), sizeof(Code));
    code = static_cast<Code>(code & mask);
    found.zeros += code == 0 ? 1 : 0;
    below += code < normal ? 1 : 0;
    below_tiny += code < tiny ? 1 : 0;
  }
  found.subnormal = below - found.zeros;
  found.tiny = below_tiny - found.zeros;
  return found;
}

Result<SmallNumbers> count_small(DType dtype, std::span<const std::byte> bytes, std::size_t count) {
  const NumberFacts type = number_facts(dtype);
  if (type.bits == 8 && dtype != DType::float8_e8m0fnu) return count_small_codes<std::uint8_t>(type, bytes);
  if (type.bits == 16) return count_small_codes<std::uint16_t>(type, bytes);
  if (type.bits == 32) return count_small_codes<std::uint32_t>(type, bytes);
  if (type.bits == 64) return count_small_codes<std::uint64_t>(type, bytes);
  SmallNumbers found;
  for (const double number : TRY(as_doubles(dtype, count, bytes))) {
    found.zeros += number == 0.0 ? 1 : 0;
    found.subnormal += number != 0.0 && std::abs(number) < type.smallest_normal ? 1 : 0;
  }
  found.tiny = found.subnormal;  // types of fewer bits
  return found;
}

// Adds a block of elements to a survey.
Result<void> survey_block(DType from, std::span<const std::byte> src, DType to, std::size_t count,
                          TensorNumbers& survey) {
  std::vector<std::byte> converted(storage_bytes(to, count));
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  CastReport report;
  TRY(cast(TensorView{from, shape, src}, MutableTensorView{to, shape, converted}, {}, report));
  const SmallNumbers small = TRY(count_small(to, converted, count));
  survey.count += count;
  survey.nonzero += count - small.zeros + report.underflowed_to_zero;
  survey.vanishing += report.underflowed_to_zero;
  survey.subnormal += small.subnormal;
  survey.tiny += small.tiny;
  if (report.nan_made > report.overflowed) survey.nan_made += report.nan_made - report.overflowed;
  if (report.overflowed + report.saturated == 0) return {};
  const double largest = number_facts(to).largest;
  for (const double number : TRY(as_doubles(from, count, src))) {
    // Numbers that round back to the largest one count as masks only, which does no harm.
    if (!std::isfinite(number) || std::abs(number) <= largest) continue;
    survey.masks += number <= mask_limit || std::abs(number) > bound_limit ? 1 : 0;
  }
  survey.overflowing += report.overflowed + report.saturated;
  return {};
}

Result<void> stream_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, const TensorChange& change,
                           io::OutputFile& target) {
  auto reader = TRY(TensorProtoReader::open(file, tensor));
  const DType from = reader->tensors().front().dtype;
  const DType to = change.to == DType::undefined ? from : change.to;
  std::vector<std::byte> converted;
  return each_block(*reader, [&](std::size_t count, std::span<std::byte> src) -> Result<void> {
    if (from == to) return target.append(src);
    converted.resize(storage_bytes(to, count));
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    Result<void> done;
    if (change.has_limits()) {
      std::vector<double> numbers = TRY(as_doubles(from, count, src));
      limit_numbers(change, numbers);
      done = cast(TensorView{DType::float64, shape, std::as_bytes(std::span(numbers))},
                  MutableTensorView{to, shape, converted});
    } else {
      done = cast(TensorView{from, shape, src}, MutableTensorView{to, shape, converted});
    }
    if (done && change.clamp) done = clamp_block(from, src, to, converted, count);
    return done ? target.append(converted) : done;
  });
}

// Writes a part of a weight that is quantized.
WireRope::Producer part_of(const std::shared_ptr<const Quantization>& quantization,
                           std::vector<std::byte> StoredWeight::*part) {
  return [quantization, part](io::OutputFile& target) -> Result<void> {
    const std::shared_ptr<const StoredWeight> stored = TRY(quantization->stored());
    return target.append((*stored).*part);
  };
}

std::string entry(std::string_view key, std::string_view value) {
  return encode_field(Field::external_data, encode_field(1, key) + encode_field(2, value));
}

// Adds a tensor's data to its message, or to `external`.
void put_data(WireRope& message, const std::string& tensor, const std::string& origin, std::uint64_t bytes,
              WireRope::Producer producer, ExternalFiles* external) {
  if (external == nullptr || bytes == 0) {
    WireRope data;
    data.produce(bytes, std::move(producer));
    message.message(Field::raw_data, std::move(data));
    return;
  }
  const ExternalFiles::Place place = external->add(tensor, origin, bytes, std::move(producer));
  message.text(entry("location", place.location) + entry("offset", fmt::format("{}", place.offset)) +
               entry("length", fmt::format("{}", bytes)) +
               encode_varint_field(Field::data_location, formats::onnx::external_location));
}

bool holds_data(Field field) {
  constexpr Field fields[] = {Field::float_data,  Field::int32_data,    Field::string_data,
                              Field::int64_data,  Field::raw_data,      Field::double_data,
                              Field::uint64_data, Field::external_data, Field::data_location};
  return contains(fields, field);
}

Result<void> write_zeros(std::uint64_t bytes, io::OutputFile& target) {
  constexpr std::size_t block_bytes = 4096;
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(bytes, block_bytes));
  for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, block_bytes)) {
    TRY(target.append(std::span(zeros).first(std::min<std::uint64_t>(bytes, block_bytes))));
  }
  return {};
}

// Returns the part of a new file's name that stands for the old file; a second conversion keeps it: "w.bin" for
// "w.bin" and, of the model "m.onnx", for "m.onnx.w.bin.data".
std::string word_of(std::string_view origin, const std::string& model_name) {
  std::string_view word = origin.substr(origin.rfind('/') + 1);
  constexpr std::string_view ending = ".data";
  const std::string beginning = model_name + ".";
  if (word.size() > beginning.size() + ending.size() && word.starts_with(beginning) && word.ends_with(ending)) {
    word.remove_prefix(beginning.size());
    word.remove_suffix(ending.size());
  }
  return std::string(word);
}

}  // namespace

Result<TensorNumbers> survey_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, DType to) {
  auto reader = TRY(TensorProtoReader::open(file, tensor));
  const DType from = reader->tensors().front().dtype;
  TensorNumbers survey;
  TRY(each_block(*reader, [&](std::size_t count, std::span<std::byte> src) -> Result<void> {
    return survey_block(from, src, to, count, survey);
  }));
  return survey;
}

Result<TensorNumbers> survey_numbers(std::span<const float> numbers, DType to) {
  TensorNumbers survey;
  TRY(survey_block(DType::float32, std::as_bytes(numbers), to, numbers.size(), survey));
  return survey;
}

Result<void> each_number(const io::InputFile& file, formats::onnx::ByteRange tensor,
                         const std::function<void(const std::vector<std::int64_t>&)>& begin,
                         const std::function<void(std::uint64_t, const std::vector<double>&)>& take) {
  auto reader = TRY(TensorProtoReader::open(file, tensor));
  const TensorInfo& info = reader->tensors().front();
  begin(info.shape);
  std::uint64_t first = 0;
  return each_block(*reader, [&](std::size_t count, std::span<std::byte> src) -> Result<void> {
    const std::vector<double> numbers = TRY(as_doubles(info.dtype, count, src));
    take(first, numbers);
    first += count;
    return {};
  });
}

void limit_numbers(const TensorChange& change, std::span<double> numbers) noexcept {
  for (double& number : numbers) {
    const double magnitude = std::abs(number);
    if (change.min_positive > 0.0 && magnitude > 0.0 && magnitude < change.min_positive) {
      number = std::copysign(change.min_positive, number);
    } else if (change.max_finite > 0.0 && magnitude > change.max_finite && std::isfinite(number)) {
      number = std::copysign(change.max_finite, number);
    }
  }
}

// "MODEL.data", or "MODEL.WORD.data". Names of tensors are anything; those of files must stay in the folder.
std::string ExternalFiles::new_location(const std::string& word) {
  std::string plain = word.substr(0, 100);
  for (char& c : plain) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_plain && c != '.' && c != '_' && c != '-') c = '_';
  }
  const std::string base = plain.empty() ? layout_.model_name : fmt::format("{}.{}", layout_.model_name, plain);
  std::string location = locations_.take(base) + ".data";
  const auto other = layout_.names.find(location);
  return other == layout_.names.end() ? location : other->second;
}

ExternalFiles::Place ExternalFiles::add(const std::string& tensor, const std::string& origin, std::uint64_t bytes,
                                        WireRope::Producer producer) {
  const auto [place, is_new] = by_origin_.try_emplace(layout_.per_old_file ? origin : std::string(), files_.size());
  if (is_new || layout_.per_tensor) {
    const std::string& word = layout_.per_tensor ? tensor : word_of(place->first, layout_.old_name);
    files_.push_back({.location = new_location(word), .contents = {}});
    place->second = files_.size() - 1;
  }
  File& file = files_[place->second];
  // Runtimes map large tensors.
  const std::uint64_t unit =
      bytes >= layout_.alignment ? layout_.alignment : std::min<std::uint64_t>(layout_.alignment, 64);
  const std::uint64_t padding = (unit - file.contents.size() % unit) % unit;
  file.contents.produce(padding, [padding](io::OutputFile& target) { return write_zeros(padding, target); });
  const std::uint64_t offset = file.contents.size();
  file.contents.produce(bytes, std::move(producer));
  return {.location = file.location, .offset = offset};
}

void ExternalFiles::add_file(std::string location, std::uint64_t bytes, WireRope::Producer producer) {
  files_.push_back({.location = std::move(location), .contents = {}, .is_copy = true});
  files_.back().contents.produce(bytes, std::move(producer));
}

Result<WireRope> convert_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, const TensorChange& change,
                                ExternalFiles* external) {
  const auto reader = TRY(TensorProtoReader::open(file, tensor));
  const TensorInfo& info = reader->tensors().front();
  const DType to = change.to == DType::undefined ? info.dtype : change.to;
  const std::uint64_t bytes = storage_bytes(to, info.count);
  if (bytes == SIZE_MAX) {
    return Error{.code = ErrorCode::unsupported, .message = "the tensor would be too large", .tensor = info.name};
  }

  const std::uint64_t end_of_tensor = tensor.offset + tensor.length;
  const auto copy = [&](const WireField& field, std::uint64_t end, WireRope& into) -> Result<void> {
    const auto number = static_cast<Field>(field.number);
    if (holds_data(number)) return {};
    if (number == Field::data_type) {
      into.text(encode_varint_field(field.number, to));
    } else if (number == Field::name && !change.name.empty()) {
      into.text(encode_field(field.number, change.name));
    } else {
      into.copy(field.begin, end);
    }
    return {};
  };
  WireRope rope = TRY(rewritten(file, tensor.offset, end_of_tensor, copy));

  WireRope::Producer produce = [&file, tensor, change](io::OutputFile& target) {
    return stream_tensor(file, tensor, change, target);
  };
  if (change.quantization != nullptr) produce = part_of(change.quantization, &StoredWeight::codes);
  put_data(rope, change.name.empty() ? info.name : change.name, reader->outline().external.location, bytes,
           std::move(produce), external);
  return rope;
}

Result<WireRope> scales_tensor(const io::InputFile& file, formats::onnx::ByteRange tensor, ScalePart part,
                               const std::string& name, const std::shared_ptr<const Quantization>& quantization,
                               ExternalFiles* external) {
  const auto reader = TRY(TensorProtoReader::open(file, tensor));
  const bool are_scales = part == ScalePart::scales;
  WireRope rope;
  for (const std::int64_t dimension : quantization->scales_shape()) {
    rope.text(encode_varint_field(Field::dims, static_cast<std::uint64_t>(dimension)));
  }
  const DType dtype = are_scales ? quantization->scales_dtype() : quantization->recipe().scheme->codes;
  rope.text(encode_varint_field(Field::data_type, dtype) + encode_field(Field::name, name));
  put_data(rope, name, reader->outline().external.location,
           are_scales ? quantization->scales_bytes() : quantization->zero_points_bytes(),
           part_of(quantization, are_scales ? &StoredWeight::scales : &StoredWeight::zero_points), external);
  return rope;
}

}  // namespace tensorcast::models::onnx
