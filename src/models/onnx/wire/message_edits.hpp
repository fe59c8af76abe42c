// Edits a protobuf message of any size: changes are held in memory, all other bytes are copied.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/memory_budget.hpp"
#include "io/output_file.hpp"

namespace tensorcast::models::onnx {

class MessageEdits {
 public:
  // All changes are taken from `budget`.
  explicit MessageEdits(io::MemoryBudget budget) : budget_(budget) {}

  // Later changes are inside the message in `field`, which is inside the message of the last enter(). Each message is
  // entered at most once.
  void enter(const formats::onnx::WireField& field) { levels_.push_back({.field = field}); }
  void leave() { levels_.pop_back(); }

  // Replaces the bytes [begin, end) of the file, whole fields of the message entered last, by `text`. Ranges do not
  // overlap. Errors: those of the budget.
  [[nodiscard]] Result<void> replace(std::uint64_t begin, std::uint64_t end, std::string text);
  [[nodiscard]] Result<void> insert(std::uint64_t at, std::string text) { return replace(at, at, std::move(text)); }

  // Writes the file with all changes, and corrects the lengths of the enclosing messages; may be called once. Stops and
  // returns false when `go_on`, which is called for each block, returns false. Errors: unsupported if the result would
  // exceed protobuf's limit; io.
  [[nodiscard]] Result<bool> write(const io::InputFile& source, io::OutputFile& target,
                                   const std::function<bool()>& go_on);

 private:
  static constexpr std::size_t nowhere = SIZE_MAX;
  struct Level {
    formats::onnx::WireField field;
    std::size_t enclosure = nowhere;
  };
  struct Enclosure {  // a message with changes in it
    formats::onnx::WireField field;
    std::size_t parent = nowhere;
    std::int64_t growth = 0;
  };
  struct Splice {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string text;
  };

  void grow(std::size_t enclosure, std::int64_t bytes);
  void adjust_lengths();

  io::MemoryBudget budget_;
  std::vector<Level> levels_;
  std::vector<Enclosure> enclosures_;  // outer ones first
  std::vector<Splice> splices_;
  std::int64_t growth_ = 0;  // change of the file's size
};

// A field with its key and length.
[[nodiscard]] std::string encode_field(std::uint32_t number, std::string_view contents);
[[nodiscard]] std::string encode_varint_field(std::uint32_t number, std::uint64_t value);

}  // namespace tensorcast::models::onnx
