// SPDX-License-Identifier: Apache-2.0
// Pieces of a file, texts and produced bytes, written as one message.
#include "models/onnx/wire/wire_rope.hpp"

#include <gtest/gtest.h>

#include "io/test_folder.hpp"
#include "models/onnx/wire/encode.hpp"

namespace tensorcast::models::onnx {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string written(const WireRope& rope, std::string_view source) {
  const io::TestFolder folder;
  io::OutputFile target = io::OutputFile::create(folder / "target", true).value();
  const Result<void> done = rope.write(io::InputFile::in_memory(bytes_of(source)), target);
  if (!done) return "! " + std::string(done.error().message);
  EXPECT_EQ(target.size(), rope.size());
  EXPECT_TRUE(target.commit().ok());
  return io::file_contents(folder / "target");
}

WireRope::Producer producer_of(std::string text) {
  return [text](io::OutputFile& target) { return target.append(bytes_of(text)); };
}

TEST(WireRope, PiecesStandInOrder) {
  WireRope rope;
  rope.copy(2, 4);
  rope.copy(4, 5);
  rope.text("-");
  rope.text("+");
  rope.produce(3, producer_of("abc"));
  rope.copy(0, 0);
  rope.copy(0, 1);
  EXPECT_EQ(rope.size(), 9u);
  EXPECT_EQ(written(rope, "01234567"), "234-+abc0");
  EXPECT_EQ(written(WireRope(), "01234567"), "");
}

TEST(WireRope, MessagesHaveTheLengthOfTheirContents) {
  for (const std::size_t size : {0u, 1u, 127u, 128u, 16'383u, 16'384u, 3'000'000u}) {
    const std::string source(size, 's');
    WireRope inner;
    inner.copy(0, size);
    inner.produce(2, producer_of("ab"));
    WireRope middle;
    middle.text("<");
    middle.message(7, std::move(inner));
    WireRope outer;
    outer.message(1, std::move(middle));
    outer.text(">");
    EXPECT_EQ(written(outer, source), encode_field(1, "<" + encode_field(7, source + "ab")) + ">") << size;
  }
}

TEST(WireRope, AProducerThatWritesAnotherSizeIsAnError) {
  for (const char* text : {"", "ab", "abcd"}) {
    WireRope rope;
    rope.produce(3, producer_of(text));
    EXPECT_EQ(written(rope, "").substr(0, 2), "! ") << text;
  }
  WireRope beyond;
  beyond.copy(0, 10);
  EXPECT_EQ(written(beyond, "short").substr(0, 2), "! ");
}

// Edits messages inside messages, as take(field) says.
template <class Take>
WireRope spliced(const io::InputFile& file, Splice splice, const WireField& message, Take take) {
  WireReader wire(file, message.offset, end_of(message));
  const Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
    take(field, splice);
    return {};
  });
  EXPECT_TRUE(done.ok());
  return std::move(splice).finish();
}

WireField whole(std::string_view source) { return {.length = source.size()}; }

// Every length around a change grows, and those that cross 127 or 16383 take one byte more, which the next one counts.
TEST(Splice, LengthsGrowAllTheWayOut) {
  for (const std::size_t size :
       {0, 100, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 16'370, 16'380, 70'000}) {
    const auto nested = [&](const std::string& leaf) {
      const std::string inner = encode_field(1, leaf) + encode_field(2, std::string(size, 'p'));
      const std::string middle = encode_varint_field(3, 7) + encode_field(4, inner) + encode_varint_field(5, 9);
      return encode_field(6, "before") + encode_field(7, middle) + encode_field(8, "after");
    };
    const std::string source = nested("a");
    const io::InputFile file = io::InputFile::in_memory(bytes_of(source));
    const auto leaf = [&](const WireField& field, Splice& splice) {
      WireRope text;
      text.text("longer");
      if (field.number == 1) splice.replace(field, std::move(text));
    };
    const auto inner = [&](const WireField& field, Splice& splice) {
      if (field.number == 4) splice.replace(field, spliced(file, Splice(field), field, leaf));
    };
    const auto outer = [&](const WireField& field, Splice& splice) {
      if (field.number == 7) splice.replace(field, spliced(file, Splice(field), field, inner));
    };
    EXPECT_EQ(written(spliced(file, Splice(0, source.size()), whole(source), outer), source), nested("longer")) << size;
  }
}

TEST(Splice, EditsComeInAnyOrderAndInsertionsBeforeWhatTheyPrecede) {
  const std::string source = encode_field(1, "a") + encode_field(1, "b") + encode_varint_field(2, 3);
  const io::InputFile file = io::InputFile::in_memory(bytes_of(source));
  WireReader wire(file, 0, file.size());
  const WireField first = wire.next().value();
  ASSERT_TRUE(wire.skip(first).ok());
  const WireField second = wire.next().value();
  const auto field = [](std::string_view text) {
    WireRope rope;
    rope.text(encode_field(3, text));
    return rope;
  };
  Splice splice(0, source.size());
  EXPECT_FALSE(splice.changed());
  splice.replace_by_fields(second, field("bb"));
  splice.insert(second.begin, field("new"));
  splice.insert(second.begin, field("newer"));
  splice.replace_by_fields(first, {});
  EXPECT_TRUE(splice.changed());
  EXPECT_EQ(written(std::move(splice).finish(), source),
            encode_field(3, "new") + encode_field(3, "newer") + encode_field(3, "bb") + encode_varint_field(2, 3));
}

// Longer than necessary, as some writers reserve space for lengths that they do not know yet.
TEST(Splice, LengthsOfMoreBytesThanNeededAreUnderstood) {
  const std::string source = std::string("\x0A\x83\x80\x00", 4) + encode_field(2, "a");
  const io::InputFile file = io::InputFile::in_memory(bytes_of(source));
  const WireField message = WireReader(file, 0, file.size()).next().value();
  Splice inner(message);
  WireRope added;
  added.text(encode_field(2, "b"));
  inner.insert(end_of(message), std::move(added));
  Splice outer(0, source.size());
  outer.replace(message, std::move(inner).finish());
  EXPECT_EQ(written(std::move(outer).finish(), source), encode_field(1, encode_field(2, "a") + encode_field(2, "b")));
}

TEST(WireRope, WritingStopsWithinALongPiece) {
  const io::TestFolder folder;
  const std::string source(5 << 20, 'x');
  WireRope rope;
  rope.copy(0, source.size());
  io::OutputFile target = io::OutputFile::create(folder / "target", true).value();
  int calls = 0;
  const Result<void> done = rope.write(io::InputFile::in_memory(bytes_of(source)), target, [&] { return ++calls < 3; });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::cancelled);
  EXPECT_EQ(target.size(), std::uint64_t{2} << 20);
}

}  // namespace
}  // namespace tensorcast::models::onnx
