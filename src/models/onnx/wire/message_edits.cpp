#include "models/onnx/wire/message_edits.hpp"

#include <protozero/varint.hpp>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "formats/onnx/tensor_proto_schema.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

// Returns false if `go_on` does.
Result<bool> copy(const io::InputFile& source, std::uint64_t begin, std::uint64_t end, io::OutputFile& target,
                  const std::function<bool()>& go_on) {
  std::vector<std::byte> block(std::min<std::uint64_t>(end - begin, block_bytes));
  while (begin < end) {
    const std::span<std::byte> part = std::span(block).first(std::min<std::uint64_t>(end - begin, block.size()));
    if (Result<void> got = source.read(begin, part); !got) return std::move(got).error();
    if (Result<void> put = target.append(part); !put) return std::move(put).error();
    begin += part.size();
    if (!go_on()) return false;
  }
  return true;
}

std::string encode_key(std::uint32_t number, std::uint32_t wire_type) {
  std::string text;
  protozero::write_varint(std::back_inserter(text), std::uint64_t{number} << 3 | wire_type);
  return text;
}

std::string encode_head(std::uint32_t number, std::uint64_t length) {
  std::string text = encode_key(number, 2);
  protozero::write_varint(std::back_inserter(text), length);
  return text;
}

}  // namespace

std::string encode_field(std::uint32_t number, std::string_view contents) {
  return encode_head(number, contents.size()) += contents;
}

std::string encode_varint_field(std::uint32_t number, std::uint64_t value) {
  std::string text = encode_key(number, 0);
  protozero::write_varint(std::back_inserter(text), value);
  return text;
}

void MessageEdits::grow(std::size_t enclosure, std::int64_t bytes) {
  (enclosure == nowhere ? growth_ : enclosures_[enclosure].growth) += bytes;
}

Result<void> MessageEdits::replace(std::uint64_t begin, std::uint64_t end, std::string text) {
  if (Result<void> fits = budget_.take_grown<Splice>(); !fits) return fits;
  if (Result<void> fits = budget_.take(text.capacity()); !fits) return fits;
  std::size_t parent = nowhere;
  for (Level& level : levels_) {
    if (level.enclosure == nowhere) {
      // Its length is another splice.
      if (Result<void> fits = budget_.take_grown<Enclosure>(); !fits) return fits;
      if (Result<void> fits = budget_.take_grown<Splice>(); !fits) return fits;
      level.enclosure = enclosures_.size();
      enclosures_.push_back({.field = level.field, .parent = parent});
    }
    parent = level.enclosure;
  }
  grow(parent, static_cast<std::int64_t>(text.size()) - static_cast<std::int64_t>(end - begin));
  splices_.push_back({.begin = begin, .end = end, .text = std::move(text)});
  return {};
}

// A longer length may take more bytes itself, which makes the enclosing messages longer.
void MessageEdits::adjust_lengths() {
  for (auto enclosure = enclosures_.rbegin(); enclosure != enclosures_.rend(); ++enclosure) {
    const formats::onnx::WireField& field = enclosure->field;
    const std::uint64_t length = field.length + static_cast<std::uint64_t>(enclosure->growth);
    std::string head = encode_head(field.number, length);
    const auto growth = static_cast<std::int64_t>(head.size()) - static_cast<std::int64_t>(field.offset - field.begin);
    grow(enclosure->parent, enclosure->growth + growth);
    splices_.push_back({.begin = field.begin, .end = field.offset, .text = std::move(head)});
  }
}

Result<bool> MessageEdits::write(const io::InputFile& source, io::OutputFile& target,
                                 const std::function<bool()>& go_on) {
  adjust_lengths();
  const std::uint64_t size = source.size() + static_cast<std::uint64_t>(growth_);
  if (size > formats::onnx::max_message_bytes) {
    return Error{.code = ErrorCode::unsupported,
                 .message = "the model would be larger than protobuf's limit of 2 GiB",
                 .hint = "large models keep their tensors in files of their own, as external data"};
  }
  if (Result<void> reserved = target.reserve(size); !reserved) return std::move(reserved).error();
  // An insertion before a field precedes the field's own change.
  std::stable_sort(splices_.begin(), splices_.end(), [](const Splice& a, const Splice& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t position = 0;
  for (const Splice& splice : splices_) {
    if (const Result<bool> copied = copy(source, position, splice.begin, target, go_on); !copied || !*copied) {
      return copied;
    }
    if (Result<void> put = target.append(std::as_bytes(std::span(splice.text))); !put) return std::move(put).error();
    position = splice.end;
  }
  if (const Result<bool> copied = copy(source, position, source.size(), target, go_on); !copied || !*copied) {
    return copied;
  }
  if (target.size() == size) return true;
  return Error{.code = ErrorCode::internal, .message = "the model did not get the size that it should have"};
}

}  // namespace tensorcast::models::onnx
