// SPDX-License-Identifier: Apache-2.0
// tensorcast_stores_bench: stores that bypass the cache against stores through it, on one thread: into memory that the
// system has to zero first, into memory that was given back with MADV_FREE, and into memory that is there; in pages of
// 4 KiB and in huge pages. Prints a table, and the rules of cast/tuning.hpp that this CPU asks for.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cast/pieces.hpp"
#include "codec/policy.hpp"

namespace {

using namespace tensorcast;

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

struct Pair {
  DType from, to;
};
// Two of each ratio of bytes read to bytes written.
constexpr Pair pairs[] = {{DType::int8, DType::float32},     {DType::uint8, DType::int32},
                          {DType::int32, DType::int64},      {DType::float16, DType::float32},
                          {DType::int32, DType::float32},    {DType::bfloat16, DType::float16},
                          {DType::float32, DType::bfloat16}, {DType::float32, DType::float16},
                          {DType::float32, DType::int8},     {DType::float32, DType::float8_e4m3fn}};

enum class Memory : std::uint8_t { fresh, freed, there };
constexpr std::array memory_names = {"new", "MADV_FREE", "there"};

// Memory of the system, in pages of one size.
class Buffer {
 public:
  Buffer(std::size_t bytes, bool huge) : bytes_(bytes), huge_(huge) { map(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::munmap(base_, bytes_ + huge_page_bytes); }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  void prepare(Memory memory) {
    if (memory == Memory::fresh) {
      ::munmap(base_, bytes_ + huge_page_bytes);
      map();
    } else if (memory == Memory::freed) {
      ::madvise(data_, bytes_, MADV_FREE);
    }
  }

 private:
  void map() {
    base_ = ::mmap(nullptr, bytes_ + huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) std::abort();
    const auto address = reinterpret_cast<std::uintptr_t>(base_);
    data_ = reinterpret_cast<std::byte*>((address + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes);
    ::madvise(data_, bytes_, huge_ ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }

  std::size_t bytes_;
  bool huge_;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
};

double milliseconds(const Pieces& pieces, const Conversion& conversion) {
  const auto start = std::chrono::steady_clock::now();
  if (!pieces.convert(conversion, nullptr)) std::abort();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

double geometric_mean(const std::vector<double>& logs) {
  double sum = 0.0;
  for (const double log : logs) sum += log;
  return std::exp(sum / static_cast<double>(logs.size()));
}

struct Measured {
  double bypass_ms = 0.0;
  double through_ms = 0.0;

  [[nodiscard]] double ratio() const { return through_ms / bypass_ms; }
};

// Both ways take turns.
Measured measure(const Pair& pair, std::size_t count, Memory memory, bool huge, int rounds) {
  Buffer src(storage_bytes(pair.from, count), huge), dst(storage_bytes(pair.to, count), huge);
  std::memset(src.data(), 1, src.bytes());
  std::memset(dst.data(), 1, dst.bytes());
  const Conversion conversion{src.data(), pair.from, dst.data(), pair.to, count};
  std::vector<double> samples[2];
  for (int round = 0; round < rounds; ++round) {
    for (const Stores stores : {Stores::bypass_cache, Stores::through_cache}) {
      dst.prepare(memory);
      Conversion now = conversion;
      now.dst = dst.data();
      const Pieces pieces(now, codec::policy_of({}, pair.from, pair.to), nullptr, stores);
      samples[stores == Stores::through_cache].push_back(milliseconds(pieces, now));
    }
  }
  return {median(samples[0]), median(samples[1])};
}

}  // namespace

// Arguments: Mi elements, and rounds.
int main(int argc, char** argv) {
  const std::size_t count = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 16) << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  fmt::print("{} Mi elements, one thread, {}: milliseconds bypassing the cache, through it, and their ratio\n\n",
             count >> 20, name(active_target()));
  fmt::print("| {:<26} | {:<9} | {:<25} | {:<25} |\n", "pair", "memory", "pages of 4 KiB", "huge pages");
  fmt::print("| --- | --- | --- | --- |\n");
  // Logarithms of ratios, by bytes read for each byte written.
  constexpr std::array columns = {"new, 4 KiB", "new, huge", "MADV_FREE", "there"};
  std::array<std::map<double, std::vector<double>>, columns.size()> logs;
  for (const Pair& pair : pairs) {
    for (const Memory memory : {Memory::fresh, Memory::freed, Memory::there}) {
      const auto row = static_cast<std::size_t>(memory);
      std::string cells;
      for (const bool huge : {false, true}) {
        const Measured m = measure(pair, count, memory, huge, rounds);
        cells += fmt::format(" {:>7.1f} {:>7.1f} {:>7.2f}   |", m.bypass_ms, m.through_ms, m.ratio());
        const std::size_t column = memory == Memory::fresh ? (huge ? 1 : 0) : row + 1;
        logs[column][bit_width(pair.from) / static_cast<double>(bit_width(pair.to))].push_back(std::log(m.ratio()));
      }
      fmt::print("| {:<26} | {:<9} |{}\n", fmt::format("{} to {}", name(pair.from), name(pair.to)), memory_names[row],
                 cells);
      std::fflush(stdout);
    }
  }
  fmt::print(
      "\nThrough the cache over bypassing it, geometric means; below 1, stores through the cache are faster:\n\n");
  fmt::print("| read for each byte written | {} |\n|", fmt::join(columns, " | "));
  for (std::size_t i = 0; i <= columns.size(); ++i) fmt::print(" --- |");
  fmt::print("\n");
  std::array<double, columns.size()> bypassed = {};  // how much is read at most where bypassing is faster
  for (const auto& [ratio, unused] : logs[0]) {
    fmt::print("| {} |", ratio);
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const double mean = geometric_mean(logs[column].at(ratio));
      fmt::print(" {:.2f} |", mean);
      if (mean > 1.0) bypassed[column] = ratio;
    }
    fmt::print("\n");
  }
  fmt::print("\nBypass the cache where at most this is read for each byte written (0: never):\n\n");
  for (std::size_t column = 0; column < columns.size(); ++column) {
    fmt::print("* {}: {}\n", columns[column], bypassed[column]);
  }
}
