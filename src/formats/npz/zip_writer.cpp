#include "formats/npz/zip_writer.hpp"

#include <fmt/format.h>
#include <minizip/zip.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace tensorcast::formats::npz {
namespace {

constexpr unsigned long made_by = (3ul << 8) | 45;  // Unix, version 4.5 of the specification, as Python writes
constexpr unsigned long utf8_flag = 0x800;          // of names that are not ASCII
constexpr unsigned long first_day = (1ul << 21) | (1ul << 16);  // 1980-01-01: equal tensors give equal files
constexpr unsigned long owner_may_read_and_write = 0600ul << 16;
constexpr std::size_t max_step_bytes = std::size_t{16} << 20;  // minizip counts in 32 bits

}  // namespace

// minizip's view of an OutputFile. The first error is kept, since minizip only knows that there was one.
struct ZipWriter::Stream {
  explicit Stream(io::OutputFile& out) : file(out) {}

  static void* open(void* self, const void*, int) { return self; }
  static int close(void*, void*) { return 0; }
  static int failed(void* self, void*) { return static_cast<Stream*>(self)->error ? 1 : 0; }
  static uLong read(void*, void*, void*, uLong) { return 0; }  // only archives that grow are read
  static ZPOS64_T tell(void* self, void*) { return static_cast<Stream*>(self)->position; }

  static long seek(void* self, void*, ZPOS64_T offset, int origin) {
    Stream& stream = *static_cast<Stream*>(self);
    const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                               : origin == ZLIB_FILEFUNC_SEEK_CUR ? stream.position
                                                                  : stream.file.size();
    if (base + offset > stream.file.size()) return -1;
    stream.position = base + offset;
    return 0;
  }

  // At the end, or over what is there already: sizes that were not known when an entry began.
  static uLong write(void* self, void*, const void* data, uLong size) {
    Stream& stream = *static_cast<Stream*>(self);
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

  io::OutputFile& file;
  std::uint64_t position = 0;
  std::optional<Error> error;
};

Error ZipWriter::failure(std::string what) const {
  if (stream_->error) return *stream_->error;
  return Error{.code = ErrorCode::internal, .message = "zip archive: " + std::move(what)};
}

Result<std::unique_ptr<ZipWriter>> ZipWriter::open(io::OutputFile& file) {
  std::unique_ptr<ZipWriter> writer(new ZipWriter());
  writer->stream_ = std::make_unique<Stream>(file);
  zlib_filefunc64_def functions{};
  functions.zopen64_file = &Stream::open;
  functions.zread_file = &Stream::read;
  functions.zwrite_file = &Stream::write;
  functions.ztell64_file = &Stream::tell;
  functions.zseek64_file = &Stream::seek;
  functions.zclose_file = &Stream::close;
  functions.zerror_file = &Stream::failed;
  functions.opaque = writer->stream_.get();
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
