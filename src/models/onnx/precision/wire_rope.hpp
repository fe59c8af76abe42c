// A protobuf message of any size as pieces: bytes of a file, new text, tensors that are converted while they are
// written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::models::onnx::precision {

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

}  // namespace tensorcast::models::onnx::precision
