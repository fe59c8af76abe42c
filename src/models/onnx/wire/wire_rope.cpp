// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/wire/wire_rope.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "models/onnx/wire/encode.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

}  // namespace

Result<void> copy_range(const io::InputFile& source, std::uint64_t begin, std::uint64_t bytes, io::OutputFile& target,
                        const std::function<bool()>& go_on) {
  std::vector<std::byte> block(std::min<std::uint64_t>(bytes, block_bytes));
  while (bytes > 0) {
    const std::span<std::byte> part = std::span(block).first(std::min<std::uint64_t>(bytes, block.size()));
    TRY(source.read(begin, part));
    TRY(target.append(part));
    begin += part.size();
    bytes -= part.size();
    if (bytes > 0 && go_on && !go_on()) return cancelled();
  }
  return {};
}

void WireRope::add(Piece piece) {
  if (piece.bytes == 0) return;
  size_ += piece.bytes;
  if (!pieces_.empty() && pieces_.back().kind == piece.kind) {
    Piece& last = pieces_.back();
    if (piece.kind == Piece::Kind::copy && last.begin + last.bytes == piece.begin) {
      last.bytes += piece.bytes;
      return;
    }
    if (piece.kind == Piece::Kind::text) {
      last.text += piece.text;
      last.bytes += piece.bytes;
      return;
    }
  }
  pieces_.push_back(std::move(piece));
}

void WireRope::copy(std::uint64_t begin, std::uint64_t end) {
  add({.begin = begin, .bytes = end - begin, .kind = Piece::Kind::copy});
}

void WireRope::text(std::string_view bytes) {
  add({.bytes = bytes.size(), .kind = Piece::Kind::text, .text = std::string(bytes)});
}

void WireRope::produce(std::uint64_t bytes, Producer producer) {
  add({.bytes = bytes,
       .kind = Piece::Kind::produce,
       .producer = std::make_shared<const Producer>(std::move(producer))});
}

void WireRope::append(WireRope other) {
  for (Piece& piece : other.pieces_) add(std::move(piece));
}

void WireRope::message(FieldNumber number, WireRope contents) {
  text(encode_head(number, contents.size()));
  append(std::move(contents));
}

io::InputFile WireRope::as_file(const io::InputFile& source) && {
  std::vector<io::InputFile::Part> parts;
  parts.reserve(pieces_.size());
  for (Piece& piece : pieces_) {
    parts.push_back({.bytes = piece.bytes, .offset = piece.begin, .text = std::move(piece.text)});
  }
  return io::InputFile::spliced(source, std::move(parts));
}

Result<void> WireRope::write(const io::InputFile& source, io::OutputFile& target,
                             const std::function<bool()>& go_on) const {
  for (const Piece& piece : pieces_) {
    if (go_on && !go_on()) return cancelled();
    const std::uint64_t before = target.size();
    switch (piece.kind) {
      case Piece::Kind::copy:
        TRY(copy_range(source, piece.begin, piece.bytes, target, go_on));
        break;
      case Piece::Kind::text:
        TRY(target.append(std::as_bytes(std::span(piece.text))));
        break;
      case Piece::Kind::produce:
        TRY((*piece.producer)(target));
        break;
    }
    if (target.size() - before != piece.bytes) {
      return Error{.code = ErrorCode::internal,
                   .message = "a part of the model did not get the size that it should have"};
    }
  }
  return {};
}

void Splice::replace(const formats::onnx::WireField& part, WireRope contents) {
  replace_by_fields(part, WireRope(part.number, std::move(contents)));
}

void Splice::replace_by_fields(const formats::onnx::WireField& part, WireRope fields) {
  edits_.push_back({.begin = part.begin, .end = end_of(part), .fields = std::move(fields)});
}

void Splice::insert(std::uint64_t at, WireRope fields) {
  edits_.push_back({.begin = at, .end = at, .fields = std::move(fields)});
}

WireRope Splice::finish() && {
  // What is inserted before a field precedes the field's own change.
  const auto earlier = [](const Edit& a, const Edit& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); };
  if (!std::ranges::is_sorted(edits_, earlier)) {
    std::ranges::stable_sort(edits_, earlier);
  }
  WireRope rope;
  std::uint64_t position = begin_;
  for (Edit& edit : edits_) {
    rope.copy(position, edit.begin);
    rope.append(std::move(edit.fields));
    position = edit.end;
  }
  rope.copy(position, end_);
  return rope;
}

}  // namespace tensorcast::models::onnx
