#include "formats/npz/zip_writer.hpp"

#include <fmt/format.h>
#include <minizip/zip.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "formats/npz/zip_stream.hpp"

namespace tensorcast::formats::npz {
namespace {

constexpr unsigned long made_by = (3ul << 8) | 45;  // Unix, version 4.5 of the specification, as Python writes
constexpr unsigned long utf8_flag = 0x800;          // of names that are not ASCII
constexpr unsigned long first_day = (1ul << 21) | (1ul << 16);  // 1980-01-01: equal tensors give equal files
constexpr unsigned long owner_may_read_and_write = 0600ul << 16;
constexpr std::size_t max_step_bytes = std::size_t{16} << 20;  // minizip counts in 32 bits

}  // namespace

struct ZipWriter::Stream : ZipStream<io::OutputFile> {
  using ZipStream::ZipStream;

  static uLong read(void*, void*, void*, uLong) { return 0; }  // only archives that grow are read

  // At the end, or over what is there already: sizes that were not known when an entry began.
  static uLong write(void* self, void*, const void* data, uLong size) {
    ZipStream& stream = of(self);
    if (stream.error) return 0;
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
    const bool at_end = stream.position == stream.file.size();
    if (auto put = at_end ? stream.file.append(bytes) : stream.file.patch(stream.position, bytes); !put) {
      if (!stream.error) stream.error = std::move(put).error();
      return 0;
    }
    stream.position += size;
    return size;
  }
};

Error ZipWriter::failure(std::string what) const {
  if (stream_->error) return *stream_->error;
  return Error{.code = ErrorCode::internal, .message = "zip archive: " + std::move(what)};
}

Result<std::unique_ptr<ZipWriter>> ZipWriter::open(io::OutputFile& file) {
  std::unique_ptr<ZipWriter> writer(new ZipWriter());
  writer->stream_ = std::make_unique<Stream>(file);
  zlib_filefunc64_def functions = writer->stream_->functions();
  functions.zread_file = &Stream::read;
  functions.zwrite_file = &Stream::write;
  writer->archive_ = zipOpen2_64(nullptr, APPEND_STATUS_CREATE, nullptr, &functions);
  if (writer->archive_ == nullptr) return writer->failure("cannot begin");
  return writer;
}

ZipWriter::ZipWriter() = default;

ZipWriter::~ZipWriter() {
  if (archive_ == nullptr) return;
  // Abandoned: minizip frees its memory only by closing, which must not write any more.
  if (!stream_->error) stream_->error = Error{.code = ErrorCode::internal, .message = "abandoned"};
  zipClose(archive_, nullptr);
}

Result<void> ZipWriter::begin(const std::string& name, const EntryOptions& options) {
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  zip_fileinfo info{};
  info.dosDate = first_day;
  info.external_fa = owner_may_read_and_write;
  const char* const comment = options.comment.empty() ? nullptr : options.comment.c_str();
  const int status =
      zipOpenNewFileInZip4_64(archive_, name.c_str(), &info, nullptr, 0, nullptr, 0, comment,
                              options.deflate ? Z_DEFLATED : 0, Z_DEFAULT_COMPRESSION, 0, -MAX_WBITS, MAX_MEM_LEVEL - 1,
                              Z_DEFAULT_STRATEGY, nullptr, 0, made_by, ascii ? 0 : utf8_flag, options.large ? 1 : 0);
  if (status != ZIP_OK) return failure(fmt::format("cannot begin an entry (status {})", status));
  return {};
}

Result<void> ZipWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t step = std::min(bytes.size(), max_step_bytes);
    const int status = zipWriteInFileInZip(archive_, bytes.data(), static_cast<unsigned>(step));
    if (status != ZIP_OK) return failure(fmt::format("cannot write (status {})", status));
    bytes = bytes.subspan(step);
  }
  return {};
}

Result<void> ZipWriter::end() {
  const int status = zipCloseFileInZip(archive_);
  if (status != ZIP_OK) return failure(fmt::format("cannot end an entry (status {})", status));
  return {};
}

Result<void> ZipWriter::finish() {
  void* const archive = std::exchange(archive_, nullptr);
  const int status = zipClose(archive, nullptr);
  if (status != ZIP_OK || stream_->error) return failure(fmt::format("cannot write the directory (status {})", status));
  return {};
}

}  // namespace tensorcast::formats::npz
