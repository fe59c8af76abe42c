// A protobuf message of any size as pieces: bytes of a file, new text, tensors that are converted while they are
// written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::models::onnx {

class WireRope {
 public:
  // Appends exactly as many bytes to the file as were announced.
  using Producer = std::function<Result<void>(io::OutputFile&)>;

  void copy(std::uint64_t begin, std::uint64_t end);  // bytes of the source
  void text(std::string_view bytes);
  void produce(std::uint64_t bytes, Producer producer);
  // A field of this message, with its key and length.
  void message(std::uint32_t number, WireRope contents);
  void append(WireRope other);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // The same bytes as a file, unless a part is produced. `source` outlives the result.
  [[nodiscard]] io::InputFile as_file(const io::InputFile& source) &&;
  // Stops between pieces when `go_on` returns false. Errors: io; cancelled; those of producers; internal if one writes
  // another amount than announced.
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

// A message whose parts are replaced in the order of the file.
class RopeSplice {
 public:
  // `begin`: of the message's contents.
  explicit RopeSplice(std::uint64_t begin) : position_(begin) {}
  // A field gets new contents.
  void replace(const formats::onnx::WireField& part, WireRope contents);
  // Whole fields stand in the place of one.
  void replace_by_fields(const formats::onnx::WireField& part, WireRope fields);
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  [[nodiscard]] WireRope finish(std::uint64_t end) &&;

 private:
  WireRope rope_;
  std::uint64_t position_;
  bool changed_ = false;
};

[[nodiscard]] inline std::uint64_t end_of(const formats::onnx::WireField& field) noexcept {
  return field.offset + field.length;
}

}  // namespace tensorcast::models::onnx
