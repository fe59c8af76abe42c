// SPDX-License-Identifier: Apache-2.0
#include "formats/npz/zip_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/npz/zip_records.hpp"

namespace tensorcast::formats::npz {
namespace {

// Larger directories are an error, so a directory always fits into memory.
constexpr std::uint64_t max_entries = 100'000;
constexpr std::uint64_t max_directory_bytes = std::uint64_t{64} << 20;
constexpr std::size_t max_comment_bytes = 65535;   // of the archive
constexpr std::uint64_t max_deflate_ratio = 1032;  // deflate's largest ratio of inflated to stored bytes

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t end = 0;  // offset of the first record of the directory's end
};

Result<std::vector<std::byte>> read_bytes(const io::InputFile& file, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> buffer(bytes);
  TRY(file.read(offset, buffer));
  return buffer;
}

// Finds the last record of the archive; only the archive's comment may follow it.
Result<std::uint64_t> find_directory_end(const io::InputFile& file) {
  if (file.size() >= directory_end_bytes) {
    const std::uint64_t tail_bytes = std::min<std::uint64_t>(file.size(), directory_end_bytes + max_comment_bytes);
    const std::uint64_t begin = file.size() - tail_bytes;
    const std::vector<std::byte> tail = TRY(read_bytes(file, begin, tail_bytes));
    for (std::size_t at = tail_bytes - directory_end_bytes + 1; at-- > 0;) {
      RecordReader record{std::span(tail).subspan(at, directory_end_bytes)};
      if (record.get<std::uint32_t>() != directory_end_signature) continue;
      record.skip(directory_end_bytes - sizeof(std::uint32_t) - sizeof(std::uint16_t));
      if (at + directory_end_bytes + record.get<std::uint16_t>() <= tail_bytes) return begin + at;
    }
  }
  return damaged_archive("its directory is missing or cut off");
}

// Fills in the fields that do not fit into the record at the end of the file.
Result<void> read_zip64_end(const io::InputFile& file, std::uint64_t locator_offset, Directory& directory) {
  const std::vector<std::byte> locator = TRY(read_bytes(file, locator_offset, zip64_locator_bytes));
  RecordReader located(locator);
  if (located.get<std::uint32_t>() != zip64_locator_signature) return {};  // no zip64 record
  if (located.get<std::uint32_t>() != 0) return unsupported("the archive has several files");
  const auto offset = located.get<std::uint64_t>();
  if (offset > locator_offset || locator_offset - offset < zip64_directory_end_bytes) {
    return damaged_archive("the end of its directory is not where the archive says");
  }
  const std::vector<std::byte> bytes = TRY(read_bytes(file, offset, zip64_directory_end_bytes));
  RecordReader record(bytes);
  if (record.get<std::uint32_t>() != zip64_directory_end_signature) {
    return damaged_archive("the end of its directory is not where the archive says");
  }
  record.skip(8 + 2 + 2);  // the record's size, versions
  const auto this_disk = record.get<std::uint32_t>();
  const auto directory_disk = record.get<std::uint32_t>();
  const auto entries_on_disk = record.get<std::uint64_t>();
  const auto entries = record.get<std::uint64_t>();
  const auto directory_bytes = record.get<std::uint64_t>();
  const auto directory_offset = record.get<std::uint64_t>();
  if (this_disk != 0 || directory_disk != 0 || entries_on_disk != entries) {
    return unsupported("the archive has several files");
  }
  const auto fill_in = [](std::uint64_t& field, std::uint64_t saturated, std::uint64_t value) {
    const bool agrees = field == saturated || field == value;
    field = value;
    return agrees;
  };
  if (!fill_in(directory.entries, elsewhere_16, entries) || !fill_in(directory.bytes, elsewhere, directory_bytes) ||
      !fill_in(directory.offset, elsewhere, directory_offset)) {
    return damaged_archive("its two ends of the directory contradict each other");
  }
  directory.end = offset;
  return {};
}

Result<Directory> locate_directory(const io::InputFile& file) {
  const std::uint64_t end = TRY(find_directory_end(file));
  const std::vector<std::byte> bytes = TRY(read_bytes(file, end, directory_end_bytes));
  RecordReader record(bytes);
  record.skip(sizeof directory_end_signature);
  const auto this_disk = record.get<std::uint16_t>();
  const auto directory_disk = record.get<std::uint16_t>();
  const auto entries_on_disk = record.get<std::uint16_t>();
  Directory directory;
  directory.entries = record.get<std::uint16_t>();
  directory.bytes = record.get<std::uint32_t>();
  directory.offset = record.get<std::uint32_t>();
  directory.end = end;
  const auto is_first_disk = [](std::uint16_t disk) { return disk == 0 || disk == elsewhere_16; };
  if (!is_first_disk(this_disk) || !is_first_disk(directory_disk) ||
      (entries_on_disk != directory.entries && entries_on_disk != elsewhere_16)) {
    return unsupported("the archive has several files");
  }
  if (end >= zip64_locator_bytes) {
    TRY(read_zip64_end(file, end - zip64_locator_bytes, directory));
  }
  if (directory.entries > max_entries) {
    return unsupported(fmt::format("the archive claims {} entries; {} are allowed", directory.entries, max_entries));
  }
  if (directory.offset > directory.end || directory.bytes > directory.end - directory.offset) {
    return damaged_archive("the directory is not where the archive says");
  }
  if (directory.bytes > max_directory_bytes) {
    return unsupported(fmt::format("the directory has {} bytes; {} are allowed", directory.bytes, max_directory_bytes));
  }
  return directory;
}

// Replaces each of `fields` whose value is in zip64's extra field, in the order of that field.
Result<void> apply_zip64(std::span<const std::byte> extra, std::span<std::uint64_t* const> fields) {
  const Error malformed = damaged_archive("an extra field is malformed");
  RecordReader blocks(extra);
  while (blocks.left() >= 4) {
    const auto id = blocks.get<std::uint16_t>();
    const auto bytes = blocks.get<std::uint16_t>();
    if (bytes > blocks.left()) return malformed;
    RecordReader block(blocks.take(bytes));
    if (id != zip64_extra_id) continue;
    for (std::uint64_t* const field : fields) {
      if (*field != elsewhere) continue;
      if (block.left() < sizeof *field) return malformed;
      *field = block.get<std::uint64_t>();
    }
    return {};
  }
  return {};
}

// Fields that the directory and an entry's own header share.
struct EntryHeader {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;

  void read(RecordReader& record) {
    flags = record.get<std::uint16_t>();
    method = record.get<std::uint16_t>();
    record.skip(4);  // time and date
    crc = record.get<std::uint32_t>();
    stored_bytes = record.get<std::uint32_t>();
    bytes = record.get<std::uint32_t>();
  }
};

// Compares the entry's own header with the directory's, and sets the offset of the data.
Result<void> read_local_header(const io::InputFile& file, std::uint64_t offset, std::uint64_t directory_offset,
                               const EntryHeader& expected, ZipEntry& entry) {
  const auto contradiction = [] { return damaged_archive("the entry and the directory contradict each other"); };
  if (offset > directory_offset || directory_offset - offset < local_header_bytes) {
    return damaged_archive("the entry is not where the directory says");
  }
  std::array<std::byte, local_header_bytes> fixed{};
  TRY(file.read(offset, fixed));
  RecordReader record(fixed);
  if (record.get<std::uint32_t>() != local_header_signature) return contradiction();
  record.skip(2);  // version
  EntryHeader header;
  header.read(record);
  const auto name_bytes = record.get<std::uint16_t>();
  const auto extra_bytes = record.get<std::uint16_t>();
  entry.data_offset = offset + local_header_bytes + name_bytes + extra_bytes;
  if (entry.data_offset > directory_offset) return contradiction();
  const std::vector<std::byte> rest =
      TRY(read_bytes(file, offset + local_header_bytes, std::size_t{name_bytes} + extra_bytes));
  RecordReader variable(rest);
  if (header.method != expected.method || variable.text(name_bytes) != entry.name) return contradiction();
  if (((header.flags ^ expected.flags) & encrypted_flag) != 0) return contradiction();
  if ((header.flags & data_descriptor_flag) == 0) {
    std::uint64_t* const fields[] = {&header.bytes, &header.stored_bytes};
    TRY(apply_zip64(variable.take(extra_bytes), fields));
    if (header.crc != expected.crc || header.bytes != expected.bytes || header.stored_bytes != expected.stored_bytes) {
      return contradiction();
    }
  }
  if (entry.stored_bytes > directory_offset - entry.data_offset) {
    return damaged_archive(fmt::format("the entry claims {} bytes beyond the end of the data", entry.stored_bytes));
  }
  return {};
}

Result<void> check_entry(const EntryHeader& header) {
  if ((header.flags & encrypted_flag) != 0) return unsupported("the entry is encrypted");
  if (header.method != stored_method && header.method != deflated_method) {
    return unsupported(fmt::format("compression method {} is neither stored nor deflated", header.method));
  }
  if (header.method == stored_method && header.stored_bytes != header.bytes) {
    return damaged_archive(
        fmt::format("the stored entry claims {} bytes but holds {}", header.bytes, header.stored_bytes));
  }
  if (header.bytes / max_deflate_ratio > header.stored_bytes) {
    return damaged_archive(fmt::format("{} bytes cannot hold the claimed {}", header.stored_bytes, header.bytes));
  }
  return {};
}

// Reads the next entry of the directory; nullopt for a folder.
Result<std::optional<ZipEntry>> read_entry(const io::InputFile& file, std::uint64_t directory_offset,
                                           RecordReader& directory) {
  const Error malformed = damaged_archive("an entry of the directory is malformed");
  if (directory.get<std::uint32_t>() != directory_entry_signature) return malformed;
  directory.skip(2 + 2);  // versions
  EntryHeader header;
  header.read(directory);
  const auto name_bytes = directory.get<std::uint16_t>();
  const auto extra_bytes = directory.get<std::uint16_t>();
  const auto comment_bytes = directory.get<std::uint16_t>();
  directory.skip(2 + 2 + 4);  // the disk, attributes
  std::uint64_t offset = directory.get<std::uint32_t>();
  if (directory.left() < std::size_t{name_bytes} + extra_bytes + comment_bytes) return malformed;
  ZipEntry entry;
  entry.name = directory.text(name_bytes);
  if (entry.name.find('\0') != std::string::npos || !npy::is_utf8(entry.name)) {
    return damaged_archive("the name of an entry is not UTF-8");
  }
  std::uint64_t* const fields[] = {&header.bytes, &header.stored_bytes, &offset};
  TRY(apply_zip64(directory.take(extra_bytes), fields));
  entry.comment = directory.text(comment_bytes);
  entry.deflated = header.method == deflated_method;
  entry.stored_bytes = header.stored_bytes;
  entry.bytes = header.bytes;
  entry.crc = header.crc;
  if (entry.name.ends_with('/') && entry.bytes == 0) return std::optional<ZipEntry>();

  TRY(of_tensor(entry.name, check_entry(header)));
  TRY(of_tensor(entry.name, read_local_header(file, offset, directory_offset, header, entry)));
  return std::optional<ZipEntry>(std::move(entry));
}

Result<void> check_apart(const std::vector<ZipEntry>& entries) {
  std::vector<const ZipEntry*> sorted;
  for (const ZipEntry& entry : entries) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, &ZipEntry::data_offset);
  const auto overlap = std::ranges::adjacent_find(sorted, [](const ZipEntry* a, const ZipEntry* b) {
    return a->data_offset + a->stored_bytes > b->data_offset || a->data_offset == b->data_offset;
  });
  if (overlap == sorted.end()) return {};
  return of_tensor((*(overlap + 1))->name, damaged_archive(fmt::format("the entry overlaps \"{}\"", (*overlap)->name)));
}

}  // namespace

Error damaged_archive(std::string what) { return parse_error("damaged zip archive: " + std::move(what)); }

Result<std::vector<ZipEntry>> read_zip_directory(const io::InputFile& file) {
  const Directory directory = TRY(locate_directory(file));
  const std::vector<std::byte> bytes = TRY(read_bytes(file, directory.offset, directory.bytes));
  RecordReader records(bytes);
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (records.left() < directory_entry_bytes) {
      return damaged_archive(fmt::format("the directory ends after {} of {} entries", i, directory.entries));
    }
    std::optional<ZipEntry> entry = TRY(read_entry(file, directory.offset, records));
    if (entry) entries.push_back(std::move(*entry));
  }
  if (records.left() > 0) {
    return damaged_archive(fmt::format("{} bytes follow the directory's last entry", records.left()));
  }
  TRY(check_apart(entries));
  return entries;
}

}  // namespace tensorcast::formats::npz
