// SPDX-License-Identifier: Apache-2.0
// The interface of a file format. Each format has one folder and one row in format_list.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::io {
class InputFile;     // io/input_file.hpp: bounded positional reads of one file
class MemoryBudget;  // io/memory_budget.hpp: limits what is kept of a file
class OutputFile;    // io/output_file.hpp: appends to a file that appears under its name on commit
}  // namespace tensorcast::io

namespace tensorcast::formats {

struct TensorInfo {
  std::string name;  // "" in formats of one unnamed array
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape;
  std::uint64_t count = 0;  // product of the shape, checked
  std::uint64_t bytes = 0;  // storage_bytes(dtype, count); for strings those in the file, padding included
  // The file's own name of a type that has no DType, e.g. "C64". `dtype` is then undefined, and the tensor can only be
  // copied within its format.
  std::string foreign_dtype = {};
  // The reason why the elements cannot be read although the file's other tensors can; the tensor is then only listed.
  // Null: they can. A pointer, as models have tens of thousands of tensors, and hardly one has a problem.
  std::shared_ptr<const Error> problem = nullptr;

  [[nodiscard]] std::string_view type_name() const noexcept {
    return foreign_dtype.empty() ? tensorcast::name(dtype) : std::string_view(foreign_dtype);
  }
};

// Bounds of the magnitudes of numbers other than 0, NaN and infinity.
struct Magnitudes {
  double least = 0.0;
  double most = 0.0;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// An opened and fully checked file: after open() succeeds, every tensor's data lies inside the file.
// Not thread-safe; memory is bounded by the header, never by the data.
class Reader {
 public:
  virtual ~Reader() = default;
  [[nodiscard]] virtual const std::vector<TensorInfo>& tensors() const = 0;  // in file order
  [[nodiscard]] virtual const Metadata& metadata() const = 0;                // copied to the output by a conversion
  [[nodiscard]] virtual bool compressed() const { return false; }            // for WriteOptions::compressed
  // Returns the metadata as the format itself encodes them, if metadata() cannot express them.
  [[nodiscard]] virtual std::string_view native_metadata() const { return {}; }
  // Returns the plain data of the file that are no tensors, as JSON, for a file beside the output; "" if there are
  // none.
  [[nodiscard]] virtual std::string_view other_data() const { return {}; }

  // Returns sentences about objects of the file that no output can hold, and that are left out.
  [[nodiscard]] virtual const std::vector<std::string>& warnings() const {
    static const std::vector<std::string> none;
    return none;
  }

  // Reads the bytes [offset, offset + out.size()) of tensor `index` as dense little-endian C-order storage, packed low
  // bits first. Within a tensor, offsets ascend without gaps from 0 (streams may be compressed); 0 starts again.
  // Errors: io, parse (contents that contradict the header).
  [[nodiscard]] virtual Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) = 0;

  // Returns bounds of the numbers of a tensor, once all of it was read; nullopt: they are not known.
  [[nodiscard]] virtual std::optional<Magnitudes> magnitudes(std::size_t /*index*/) const { return std::nullopt; }

  // Reads the strings of a string tensor from element `first` on, until is_full_block() or the end of the tensor.
  // Within a tensor, `first` ascends without gaps from 0; 0 starts again. Memory: the block and 8 strings.
  // Precondition: first < count. Errors: as read(); Error::element is the element's index. Default: unsupported.
  [[nodiscard]] virtual Result<StringBuffer> read_strings(std::size_t index, std::uint64_t first,
                                                          std::size_t block_bytes);
};

// Reports whether `strings` and their offsets take `block_bytes`. A full block has a multiple of 8 strings, which take
// whole bytes of any type, and at most block_bytes / 8, if that is a multiple of 8.
[[nodiscard]] inline bool is_full_block(const StringBuffer& strings, std::size_t block_bytes) noexcept {
  return (strings.offsets.size() - 1) % 8 == 0 &&
         strings.data.size() + strings.offsets.size() * sizeof(std::int64_t) >= block_bytes;
}

// Reads all strings of a tensor. Errors: those of the reader and of `budget`, which they are taken from.
[[nodiscard]] Result<StringBuffer> read_all_strings(Reader& reader, std::size_t index, io::MemoryBudget budget);

// Writes tensors in the order in which they were declared, each exactly once, as consecutive appends; none for tensors
// without elements.
class Writer {
 public:
  virtual ~Writer() = default;
  // Appends bytes to the current tensor (dense little-endian C order). Continues with the next tensor when it is full.
  [[nodiscard]] virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  // Appends strings to the current tensor, which is a string tensor. Default: unsupported.
  [[nodiscard]] virtual Result<void> append_strings(const StringBuffer& strings);
  // Reports whether measure_strings() must see all strings of a tensor, in order, before append_strings() does.
  [[nodiscard]] virtual bool measures_strings() const { return false; }
  // Errors: parse, unsupported (text that the format cannot hold); Error::element is the element's index.
  [[nodiscard]] virtual Result<void> measure_strings(const StringBuffer& /*strings*/) { return {}; }
  // Writes trailers and directories; call after the last tensor. The caller commits the file.
  [[nodiscard]] virtual Result<void> finish() = 0;
};

struct ReadOptions {
  std::optional<RawLayout> raw = {};  // raw only
  SourceTypes from = {};              // types of arrays with opaque descriptors such as |V1
  // The name of the format that tensors are copied to under their names, as its reader may then leave what only it can
  // express (GGUF: the shapes that its metadata give). Empty: none.
  std::string_view copied_to = {};
};

struct WriteOptions {
  Metadata metadata = {};          // carried over from the input, and `added`
  Metadata added = {};             // what the conversion adds; native_metadata does not have it
  std::string source_format = {};  // name of the input's format
  bool compressed = false;         // whether the input was; formats that can compress then do
  bool quantizes = false;          // whether tensors of block formats are new, not copies
  std::uint32_t file_type = 0;     // GGUF: general.file_type, if the input has one; 0: that of most elements
  // The input's native_metadata(), which outlives the writer; of use to a writer of `source_format` only.
  std::string_view native_metadata = {};
};

struct Format {
  std::string_view name;                         // "safetensors"
  std::string_view description;                  // one line for --help and the documentation
  std::span<const std::string_view> extensions;  // ".safetensors"; the first is the usual one
  bool many_tensors = false;                     // false: exactly one array
  bool named_tensors = false;
  std::string_view foreign_kind = {};  // completes "Q4_K is ..." for types that have no DType

  // Reports whether the first bytes of a file (up to 512, with the file's size) look like this format.
  bool (*sniff)(std::span<const std::byte> head, std::uint64_t file_size) = nullptr;
  // Reports whether files of this format can hold elements of `dtype`.
  bool (*can_hold)(DType dtype) = nullptr;

  // Reports whether files of this format can hold a type that has no DType, by its TensorInfo::foreign_dtype, from
  // another format. Null: none.
  bool (*can_hold_foreign)(std::string_view foreign_dtype) = nullptr;

  // `file` outlives the reader. Errors: parse, unsupported, io.
  Result<std::unique_ptr<Reader>> (*open)(const io::InputFile& file, const ReadOptions& options) = nullptr;
  // `tensors` have passed can_hold and check. Writes the header at once. `file` outlives the writer. Null: files of
  // this format are only read.
  Result<std::unique_ptr<Writer>> (*create)(io::OutputFile& file, std::span<const TensorInfo> tensors,
                                            const WriteOptions& options) = nullptr;

  // Checks names, shapes and the number of tensors. Null: no further check. Errors: unsupported, invalid_argument.
  Result<void> (*check)(std::span<const TensorInfo> tensors) = nullptr;
  // Returns in a few words why common readers of the format fail on a tensor that the format can hold; "" if they do
  // not. Null: they never fail.
  std::string (*objection)(const TensorInfo& tensor) = nullptr;
  // Returns the type that programs demand of a tensor of floating-point numbers with its shape; undefined: none. It is
  // used where the user names a type for all tensors. Null: never any.
  DType (*demanded_type)(const TensorInfo& tensor) = nullptr;
  // Returns the best order of `tensors` in the file, as indices. Null: the given order.
  std::vector<std::size_t> (*layout)(std::span<const TensorInfo> tensors) = nullptr;
};

[[nodiscard]] std::span<const Format* const> all_formats() noexcept;  // formats/format_list.cpp: the one list
[[nodiscard]] const Format* find_format(std::string_view name) noexcept;
// Reports whether the name of a file has the extension of a format.
[[nodiscard]] bool has_extension(std::string_view path);

// Detects by content first, then by extension. Errors: unsupported, naming the known formats.
[[nodiscard]] Result<const Format*> detect_format(const io::InputFile& file);
// Chooses by name if there is a format of this name, else by extension. Errors: unsupported.
[[nodiscard]] Result<const Format*> format_for_output(std::string_view path, std::string_view format_name = {});

}  // namespace tensorcast::formats
