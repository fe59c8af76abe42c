// SPDX-License-Identifier: Apache-2.0
// A protobuf message of any size as pieces: bytes of a file, new text, tensors that are converted while they are
// written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {

// Appends bytes of `source`; stops between blocks when `go_on` returns false. Errors: io; cancelled.
[[nodiscard]] Result<void> copy_range(const io::InputFile& source, std::uint64_t begin, std::uint64_t bytes,
                                      io::OutputFile& target, const std::function<bool()>& go_on = {});

class WireRope {
 public:
  // Appends exactly as many bytes to the file as were announced.
  using Producer = std::function<Result<void>(io::OutputFile&)>;

  WireRope() = default;
  explicit WireRope(std::string_view bytes) { text(bytes); }
  // A field that is this message.
  WireRope(FieldNumber number, WireRope contents) { message(number, std::move(contents)); }

  void copy(std::uint64_t begin, std::uint64_t end);  // bytes of the source
  void text(std::string_view bytes);
  void produce(std::uint64_t bytes, Producer producer);
  // Appends a field that is this message, with its key and length.
  void message(FieldNumber number, WireRope contents);
  void append(WireRope other);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // Returns a file of the same bytes, unless a part is produced. `source` outlives the result.
  [[nodiscard]] io::InputFile as_file(const io::InputFile& source) &&;
  // Stops between pieces, and blocks of long ones, when `go_on` returns false. Errors: io; cancelled; those of
  // producers; internal if one writes another amount than announced.
  [[nodiscard]] Result<void> write(const io::InputFile& source, io::OutputFile& target,
                                   const std::function<bool()>& go_on = {}) const;

 private:
  struct Piece {
    std::uint64_t begin = 0;  // of a copy
    std::uint64_t bytes = 0;
    enum class Kind : std::uint8_t { copy, text, produce } kind = Kind::copy;
    std::string text = {};
    std::shared_ptr<const Producer> producer = {};
  };
  void add(Piece piece);

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
};

// A message whose parts are replaced, in any order; all other bytes are copied.
class Splice {
 public:
  explicit Splice(const formats::onnx::WireField& message) : Splice(message.offset, end_of(message)) {}
  // [begin, end): the message's contents.
  Splice(std::uint64_t begin, std::uint64_t end) : begin_(begin), end_(end) {}

  // Gives a field new contents.
  void replace(const formats::onnx::WireField& part, WireRope contents);
  // Replaces a field by whole fields.
  void replace_by_fields(const formats::onnx::WireField& part, WireRope fields);
  // Inserts whole fields before what begins at `at`, after those that were inserted there before.
  void insert(std::uint64_t at, WireRope fields);
  // Lets change(splice) edit the message in `part`. Errors: those of change().
  template <class Change>
  [[nodiscard]] Result<void> edit(const formats::onnx::WireField& part, Change change) {
    Splice inside(part);
    TRY(change(inside));
    if (inside.changed()) replace(part, std::move(inside).finish());
    return {};
  }
  [[nodiscard]] bool changed() const noexcept { return !edits_.empty(); }
  // Returns the new contents.
  [[nodiscard]] WireRope finish() &&;

 private:
  struct Edit {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    WireRope fields = {};
  };

  std::uint64_t begin_;
  std::uint64_t end_;
  std::vector<Edit> edits_;
};

// Makes the contents of a message: take(field, end, rope) adds what each field becomes. Errors: parse, io; those of
// take().
template <class Take>
[[nodiscard]] Result<WireRope> rewritten(const io::InputFile& file, std::uint64_t begin, std::uint64_t end, Take take) {
  WireRope rope;
  WireReader wire(file, begin, end);
  TRY(each_field(wire, [&](const WireField& field) -> Result<void> {
    TRY(wire.skip(field));
    return take(field, wire.position(), rope);
  }));
  return rope;
}
template <class Take>
[[nodiscard]] Result<WireRope> rewritten(const io::InputFile& file, const WireField& message, Take take) {
  return rewritten(file, message.offset, end_of(message), take);
}

// Makes the contents of a message without its fields `number`.
[[nodiscard]] inline Result<WireRope> without_field(const io::InputFile& file, const WireField& message,
                                                    std::uint32_t number) {
  return rewritten(file, message, [&](const WireField& field, std::uint64_t end, WireRope& rope) -> Result<void> {
    if (field.number != number) rope.copy(field.begin, end);
    return {};
  });
}

// Makes the contents of a message in which each field `number`, itself a message, has the contents become(field).
template <class Become>
[[nodiscard]] Result<WireRope> with_message(const io::InputFile& file, const WireField& message, std::uint32_t number,
                                            Become become) {
  return rewritten(file, message, [&](const WireField& field, std::uint64_t end, WireRope& rope) -> Result<void> {
    if (field.number != number) {
      rope.copy(field.begin, end);
      return {};
    }
    WireRope contents = TRY(become(field));
    rope.message(number, std::move(contents));
    return {};
  });
}

}  // namespace tensorcast::models::onnx
