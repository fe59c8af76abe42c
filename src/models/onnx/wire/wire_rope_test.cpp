// Pieces of a file, texts and produced bytes, written as one message.
#include "models/onnx/wire/wire_rope.hpp"

#include <gtest/gtest.h>

#include "io/test_folder.hpp"
#include "models/onnx/wire/message_edits.hpp"

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

}  // namespace
}  // namespace tensorcast::models::onnx
