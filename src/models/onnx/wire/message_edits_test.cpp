#include "models/onnx/wire/message_edits.hpp"

#include <gtest/gtest.h>

#include <string>

#include "io/test_folder.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

std::string edited(const io::TestFolder& folder, const std::string& source,
                   void (*change)(WireReader& wire, MessageEdits& edits)) {
  io::put_file(folder / "source", source);
  const io::InputFile file = io::InputFile::open(folder / "source").value();
  WireReader wire(file, 0, file.size());
  MessageEdits edits{io::MemoryBudget(file.size())};
  change(wire, edits);
  io::OutputFile target = io::OutputFile::create(folder / "target", true).value();
  const Result<bool> written = edits.write(file, target, [] { return true; });
  EXPECT_TRUE(written.ok()) << written.error().describe();
  EXPECT_TRUE(target.commit().ok());
  return io::file_contents(folder / "target");
}

TEST(MessageEdits, WithoutChangesTheFileIsCopied) {
  const io::TestFolder folder;
  const std::string source = encode_field(1, std::string(3'000'000, 'x')) + encode_varint_field(2, 300);
  EXPECT_EQ(edited(folder, source, [](WireReader&, MessageEdits&) {}), source);
}

// Every length around a change grows, and those that cross 127 or 16383 take one byte more, which the next one counts.
TEST(MessageEdits, LengthsGrowAllTheWayOut) {
  const io::TestFolder folder;
  for (const std::size_t size :
       {0, 100, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 16'370, 16'380, 70'000}) {
    const auto nested = [&](const std::string& leaf) {
      const std::string inner = encode_field(1, leaf) + encode_field(2, std::string(size, 'p'));
      const std::string middle = encode_varint_field(3, 7) + encode_field(4, inner) + encode_varint_field(5, 9);
      return encode_field(6, "before") + encode_field(7, middle) + encode_field(8, "after");
    };
    const std::string target = edited(folder, nested("a"), [](WireReader& wire, MessageEdits& edits) {
      const auto into = [&](const WireField& field, auto next) -> Result<void> {
        edits.enter(field);
        Result<void> done = each_field_of(wire, field, next);
        edits.leave();
        return done;
      };
      const Result<void> done = each_field(wire, [&](const WireField& outer) -> Result<void> {
        if (outer.number != 7) return {};
        return into(outer, [&](const WireField& middle) -> Result<void> {
          if (middle.number != 4) return {};
          return into(middle, [&](const WireField& inner) -> Result<void> {
            if (inner.number != 1) return {};
            return edits.replace(inner.begin, inner.offset + inner.length, encode_field(1, "longer"));
          });
        });
      });
      EXPECT_TRUE(done.ok());
    });
    EXPECT_EQ(target, nested("longer")) << size;
  }
}

TEST(MessageEdits, WhatIsPutBeforeAFieldComesBeforeItsOwnChange) {
  const io::TestFolder folder;
  const std::string source = encode_field(1, encode_field(2, "a")) + encode_field(1, encode_field(2, "b"));
  const std::string target = edited(folder, source, [](WireReader& wire, MessageEdits& edits) {
    const WireField first = wire.next().value();
    ASSERT_TRUE(wire.skip(first).ok());
    const WireField second = wire.next().value();
    edits.enter(second);
    EXPECT_TRUE(edits.replace(second.offset, second.offset + second.length, encode_field(2, "bb")).ok());
    edits.leave();
    EXPECT_TRUE(edits.insert(second.begin, encode_field(3, "new")).ok());
  });
  EXPECT_EQ(target,
            encode_field(1, encode_field(2, "a")) + encode_field(3, "new") + encode_field(1, encode_field(2, "bb")));
}

// Longer than necessary, as some writers reserve space for lengths that they do not know yet.
TEST(MessageEdits, LengthsOfMoreBytesThanNeededAreUnderstood) {
  const io::TestFolder folder;
  const std::string source = std::string("\x0A\x83\x80\x00", 4) + encode_field(2, "a");
  const std::string target = edited(folder, source, [](WireReader& wire, MessageEdits& edits) {
    const WireField field = wire.next().value();
    edits.enter(field);
    EXPECT_TRUE(edits.insert(field.offset + field.length, encode_field(2, "b")).ok());
    edits.leave();
  });
  EXPECT_EQ(target, encode_field(1, encode_field(2, "a") + encode_field(2, "b")));
}

TEST(MessageEdits, ChangesAreTakenFromTheBudget) {
  MessageEdits edits{io::MemoryBudget(0)};
  const std::string text(1 << 20, 'x');
  std::uint64_t taken = 0;
  while (edits.insert(taken, text).ok()) ++taken;
  EXPECT_EQ(taken, 63u) << "of 64 MiB";
}

TEST(MessageEdits, WritingStopsWhenItIsTold) {
  const io::TestFolder folder;
  io::put_file(folder / "source", std::string(5 << 20, 'x'));
  const io::InputFile file = io::InputFile::open(folder / "source").value();
  MessageEdits edits{io::MemoryBudget(file.size())};
  io::OutputFile target = io::OutputFile::create(folder / "target", true).value();
  int calls = 0;
  const Result<bool> written = edits.write(file, target, [&] { return ++calls < 2; });
  ASSERT_TRUE(written.ok());
  EXPECT_FALSE(*written);
  EXPECT_EQ(target.size(), std::uint64_t{2} << 20);
}

}  // namespace
}  // namespace tensorcast::models::onnx
