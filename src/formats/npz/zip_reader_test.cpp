// SPDX-License-Identifier: Apache-2.0
#include "formats/npz/zip_reader.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include "formats/format_testing.hpp"
#include "formats/npz/entry_source.hpp"
#include "formats/npz/zip_records.hpp"
#include "formats/npz/zip_writer.hpp"

namespace tensorcast::formats::npz {
namespace {

using formats::testing::TempFolder;

// Selects the fields of an archive with one entry that have 64 bits, and an error in them.
struct Zip64 {
  bool bytes = false, stored_bytes = false, offset = false;        // in the directory
  bool local = false;                                              // both sizes in the entry's own header
  bool descriptor = false;                                         // the entry's own header has no sizes
  bool entries = false, directory = false, directory_end = false;  // at the end
  bool always_locator = false;                                     // although no field needs it
  std::uint64_t wrong = 0;                                         // added to every 64-bit field
};

std::string archive(const std::string& content, const Zip64& in_64) {
  const std::string name = "a.npy";
  const auto crc = static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  const auto size = static_cast<std::uint32_t>(content.size());
  const auto flags = in_64.descriptor ? data_descriptor_flag : std::uint16_t{0};
  const std::uint64_t size_64 = size + in_64.wrong;
  RecordWriter zip;
  zip.put(local_header_signature).put(std::uint16_t{45}).put(flags).put(stored_method).put(std::uint32_t{0});
  zip.put(in_64.descriptor ? 0 : crc);
  const std::uint32_t local_size = in_64.local ? elsewhere : in_64.descriptor ? 0 : size;
  zip.put(local_size).put(local_size).put(std::uint16_t{5}).put(static_cast<std::uint16_t>(in_64.local ? 20 : 0));
  zip.text(name);
  if (in_64.local) zip.put(zip64_extra_id).put(std::uint16_t{16}).put(size_64).put(size_64);
  zip.text(content);

  const std::uint64_t directory = zip.bytes().size();
  RecordWriter extra;
  if (in_64.bytes) extra.put(size_64);
  if (in_64.stored_bytes) extra.put(size_64);
  if (in_64.offset) extra.put(in_64.wrong);
  const std::size_t extra_bytes = extra.bytes().size();
  zip.put(directory_entry_signature).put(std::uint16_t{45}).put(std::uint16_t{45}).put(flags).put(stored_method);
  zip.put(std::uint32_t{0}).put(crc).put(in_64.stored_bytes ? elsewhere : size).put(in_64.bytes ? elsewhere : size);
  zip.put(std::uint16_t{5}).put(static_cast<std::uint16_t>(extra_bytes + 4 + 5)).put(std::uint16_t{0});
  zip.put(std::uint32_t{0}).put(std::uint32_t{0}).put(in_64.offset ? elsewhere : std::uint32_t{0}).text(name);
  zip.put(std::uint16_t{0x5455}).put(std::uint16_t{1}).text("x");  // another extra field first
  zip.put(zip64_extra_id).put(static_cast<std::uint16_t>(extra_bytes)).text(extra.text());

  const std::uint64_t end = zip.bytes().size();
  const std::uint64_t directory_bytes = end - directory;
  if (in_64.entries || in_64.directory || in_64.directory_end || in_64.always_locator) {
    zip.put(zip64_directory_end_signature).put(std::uint64_t{44}).put(std::uint32_t{0x2D002D}).put(std::uint64_t{0});
    const std::uint64_t entries = 1 + (in_64.entries ? in_64.wrong : 0);
    zip.put(entries).put(entries);
    zip.put(directory_bytes + (in_64.directory ? in_64.wrong : 0));
    zip.put(directory + (in_64.directory_end ? in_64.wrong : 0));
    zip.put(zip64_locator_signature).put(std::uint32_t{0}).put(end).put(std::uint32_t{1});
  }
  const std::uint16_t entries_16 = in_64.entries ? elsewhere_16 : 1;
  zip.put(directory_end_signature).put(std::uint32_t{0}).put(entries_16).put(entries_16);
  zip.put(in_64.directory ? elsewhere : static_cast<std::uint32_t>(directory_bytes));
  zip.put(in_64.directory_end ? elsewhere : static_cast<std::uint32_t>(directory)).put(std::uint16_t{0});
  return std::string(zip.text());
}

Zip64 combination(unsigned bits) {
  const auto bit = [&](unsigned i) { return ((bits >> i) & 1) != 0; };
  return {.bytes = bit(0),
          .stored_bytes = bit(1),
          .offset = bit(2),
          .local = bit(3),
          .descriptor = bit(4),
          .entries = bit(5),
          .directory = bit(6),
          .directory_end = bit(7),
          .always_locator = bit(8)};
}

Result<std::vector<ZipEntry>> entries_of(const std::string& path) {
  const Result<io::InputFile> file = io::InputFile::open(path);
  return file ? read_zip_directory(*file) : file.error();
}

TEST(ZipReader, FieldsOf64BitsInEveryCombination) {
  const TempFolder folder;
  const std::string content = "the contents";
  for (unsigned bits = 0; bits < 512; ++bits) {
    const std::string path = folder.put("a.zip", archive(content, combination(bits)));
    const Result<io::InputFile> file = io::InputFile::open(path);
    const Result<std::vector<ZipEntry>> entries = read_zip_directory(*file);
    ASSERT_TRUE(entries.ok()) << bits << ": " << entries.error().describe();
    ASSERT_EQ(entries->size(), 1u);
    EXPECT_EQ(entries->front().name, "a.npy");
    EntrySource source(*file, entries->front());
    std::string read(source.size(), '\0');
    ASSERT_TRUE(source.read(0, std::as_writable_bytes(std::span(read))).ok()) << bits;
    EXPECT_EQ(read, content) << bits;
  }
}

TEST(ZipReader, WrongFieldsOf64BitsAreErrors) {
  const TempFolder folder;
  for (const std::uint64_t wrong :
       {std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    for (const unsigned bits : {1u, 2u, 4u, 8u, 3u, 32u, 64u, 128u}) {
      Zip64 in_64 = combination(bits);
      in_64.wrong = wrong;
      const auto entries = entries_of(folder.put("a.zip", archive("the contents", in_64)));
      EXPECT_FALSE(entries.ok()) << bits << " " << wrong;
    }
  }
}

TEST(ZipReader, NoBytesMayBeMissing) {
  const TempFolder folder;
  const std::string whole = archive("the contents", combination(0x1EF));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(entries_of(folder.put("a.zip", whole.substr(0, bytes))).ok()) << bytes;
  }
  EXPECT_TRUE(entries_of(folder.put("a.zip", whole)).ok());
}

// 64-bit fields for small entries, and the records after them.
TEST(ZipWriter, LargeEntriesAreReadBack) {
  const TempFolder folder;
  const std::string path = folder.file("a.zip");
  {
    Result<io::OutputFile> file = io::OutputFile::create(path, false);
    ASSERT_TRUE(file.ok());
    ZipWriter writer(*file);
    for (const bool large : {true, false}) {
      ASSERT_TRUE(writer.begin(large ? "large" : "small", {.large = large}).ok());
      ASSERT_TRUE(writer.append(std::as_bytes(std::span("abcd", 4))).ok());
      ASSERT_TRUE(writer.end().ok());
    }
    ASSERT_TRUE(writer.finish().ok());
    ASSERT_TRUE(file->commit().ok());
  }
  const auto entries = entries_of(path);
  ASSERT_TRUE(entries.ok()) << entries.error().describe();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].bytes, 4u);
  EXPECT_EQ((*entries)[1].data_offset, (*entries)[0].data_offset + 4 + local_header_bytes + 5);
}

// 65,535 entries take zip64 records at the end.
TEST(ZipWriter, SlowManyEntriesAreReadBack) {
  const TempFolder folder;
  for (const std::size_t count : {65'534u, 65'535u, 65'536u}) {
    const std::string path = folder.file("a.zip");
    {
      Result<io::OutputFile> file = io::OutputFile::create(path, true);
      ASSERT_TRUE(file.ok());
      ZipWriter writer(*file);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(writer.begin(std::to_string(i), {}).ok());
        ASSERT_TRUE(writer.end().ok());
      }
      ASSERT_TRUE(writer.finish().ok());
      ASSERT_TRUE(file->commit().ok());
    }
    const auto entries = entries_of(path);
    ASSERT_TRUE(entries.ok()) << entries.error().describe();
    EXPECT_EQ(entries->size(), count);
  }
}

}  // namespace
}  // namespace tensorcast::formats::npz
