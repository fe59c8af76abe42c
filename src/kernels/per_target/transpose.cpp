// SPDX-License-Identifier: Apache-2.0
// Transposes tiles, as cast/transpose.hpp does, in wider registers: as many rows at once as a register has elements, so
// that it becomes a piece of a row of the result.
#include <algorithm>
#include <cstring>

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/lanes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 1

namespace {

// Groups of `size` registers have the columns of as many rows; two groups become one, until one has all.
template <int item_bytes, int size, int edge>
SIMD_INLINE void merge_groups(U8 (&rows)[edge]) {
  if constexpr (size < edge) {
    U8 merged[edge];
#pragma GCC unroll 8
    for (int i = 0; i < edge / 2; ++i) {
      const int from = i / size * 2 * size + i % size;
      merged[2 * i] = low_units<size * item_bytes>(rows[from], rows[from + size]);
      merged[2 * i + 1] = high_units<size * item_bytes>(rows[from], rows[from + size]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) rows[i] = merged[i];
    merge_groups<item_bytes, 2 * size, edge>(rows);
  }
}

// Of a row that is copied before its registers are filled: rows that are a power of two apart share one set of the
// first-level cache, which each line would leave before its second use. An odd number of lines apart they do not.
constexpr std::size_t chunk_bytes = 256, chunk_pitch = chunk_bytes + line_bytes;

template <int item_bytes>
SIMD_INLINE void transpose_chunk(const std::byte* chunk, std::size_t bytes, std::byte* dst, std::ptrdiff_t dst_pitch) {
  constexpr int edge = lane_bytes / item_bytes;  // rows and columns of a lane
  for (std::size_t at = 0; at < bytes; at += lane_bytes, dst += edge * dst_pitch) {
    U8 rows[edge];
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) rows[i] = load_lanes(chunk + at + i * chunk_pitch, edge * chunk_pitch);
    merge_groups<item_bytes, 1, edge>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) store(dst + i * dst_pitch, rows[i]);
  }
}

template <int item_bytes>
SIMD_INLINE void copy_chunk(const std::byte* src, std::ptrdiff_t src_pitch, std::size_t bytes, std::byte* chunk) {
  for (std::size_t i = 0; i < kRegisterBytes / item_bytes; ++i) {
    const std::byte* const run = src + static_cast<std::ptrdiff_t>(i) * src_pitch;
    for (std::size_t at = 0; at < bytes; at += kRegisterBytes) store(chunk + i * chunk_pitch + at, load<U8>(run + at));
  }
}

template <int item_bytes>
void transpose_slowly(const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows, std::size_t columns,
                      std::byte* dst, std::ptrdiff_t dst_pitch) {
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      std::memcpy(dst + static_cast<std::ptrdiff_t>(j) * dst_pitch + i * item_bytes,
                  src + static_cast<std::ptrdiff_t>(i) * src_pitch + j * item_bytes, item_bytes);
    }
  }
}

// The last registers of rows and columns begin where they end with the tile, so that some elements are moved twice.
template <int item_bytes>
[[gnu::noinline]] void transpose_items(const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
                                       std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) {
  constexpr std::size_t items_at_once = kRegisterBytes / item_bytes;
  if (rows < items_at_once || columns < items_at_once) {
    return transpose_slowly<item_bytes>(src, src_pitch, rows, columns, dst, dst_pitch);
  }
  alignas(line_bytes) std::byte chunk[items_at_once * chunk_pitch];
  const std::size_t row_bytes = columns * item_bytes, whole_bytes = row_bytes / kRegisterBytes * kRegisterBytes;
  for (std::size_t row = 0; row < rows; row += items_at_once) {
    row = std::min(row, rows - items_at_once);
    const std::byte* const from = src + static_cast<std::ptrdiff_t>(row) * src_pitch;
    const auto move = [&](std::size_t first, std::size_t bytes) {
      copy_chunk<item_bytes>(from + first, src_pitch, bytes, chunk);
      std::byte* const to = dst + static_cast<std::ptrdiff_t>(first / item_bytes) * dst_pitch + row * item_bytes;
      transpose_chunk<item_bytes>(chunk, bytes, to, dst_pitch);
    };
    for (std::size_t first = 0; first < whole_bytes; first += chunk_bytes) {
      move(first, std::min(chunk_bytes, whole_bytes - first));
    }
    if (whole_bytes != row_bytes) move(row_bytes - kRegisterBytes, kRegisterBytes);
  }
}

// Which elements make a lane if `ways` streams become one with their elements in turns, or such a stream as many. A
// group is a lane of each stream: `ways` lanes become as many.
class LaneMix {
 public:
  static constexpr std::size_t most_ways = 63;  // more fill a register of every width

  LaneMix(std::size_t item_bytes, std::size_t ways, bool interleaves) : ways_(ways) {
    for (std::size_t at = 0; at < ways * lane_bytes; ++at) {
      const std::size_t item = at / item_bytes;
      const std::size_t in_turns = at,
                        in_streams = item % ways * lane_bytes + item / ways * item_bytes + at % item_bytes;
      add(interleaves ? in_turns : in_streams, interleaves ? in_streams : in_turns);
    }
  }

  // A lane of each of lane_count groups.
  SIMD_INLINE U8 operator()(const U8* lanes, std::size_t made) const {
    const Sources& sources = sources_[made];
    U8 mixed = shuffled(lanes[sources.lanes[0]], sources.places[0]);
    for (std::size_t i = 1; i < sources.count; ++i) mixed |= shuffled(lanes[sources.lanes[i]], sources.places[i]);
    return mixed;
  }

  [[nodiscard]] std::size_t ways() const { return ways_; }

  // Where the bytes of the lane `made` are in the lane `from`.
  [[nodiscard]] SIMD_INLINE U8 places(std::size_t made, std::size_t from) const {
    const Sources& sources = sources_[made];
    for (std::size_t i = 0; i < sources.count; ++i) {
      if (sources.lanes[i] == from) return repeat_lane(reinterpret_cast<const std::byte*>(sources.places[i]));
    }
    return U8{} + nowhere;
  }

 private:
  static constexpr std::uint8_t nowhere = 0x80;  // becomes 0

  struct Sources {
    alignas(lane_bytes) std::uint8_t places[lane_bytes][lane_bytes];
    std::uint8_t lanes[lane_bytes];
    std::uint8_t count = 0;
  };

  SIMD_INLINE static U8 shuffled(U8 lanes, const std::uint8_t* places) {
    return shuffle_lanes(lanes, repeat_lane(reinterpret_cast<const std::byte*>(places)));
  }

  void add(std::size_t to, std::size_t from) {
    Sources& sources = sources_[to / lane_bytes];
    std::size_t i = 0;
    while (i < sources.count && sources.lanes[i] != from / lane_bytes) ++i;
    if (i == sources.count) {
      sources.lanes[i] = static_cast<std::uint8_t>(from / lane_bytes);
      std::memset(sources.places[i], nowhere, lane_bytes);
      ++sources.count;
    }
    sources.places[i][to % lane_bytes] = static_cast<std::uint8_t>(from % lane_bytes);
  }

  std::size_t ways_;
  Sources sources_[most_ways];
};

// Few ways, whose shuffles stay in registers.
template <std::size_t count>
class FewLanesMix {
 public:
  static constexpr std::size_t most_ways = count;

  SIMD_INLINE explicit FewLanesMix(const LaneMix& mix) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) places_[i][j] = mix.places(i, j);
    }
  }

  SIMD_INLINE U8 operator()(const U8* lanes, std::size_t made) const {
    U8 mixed = shuffle_lanes(lanes[0], places_[made][0]);
    for (std::size_t i = 1; i < count; ++i) mixed |= shuffle_lanes(lanes[i], places_[made][i]);
    return mixed;
  }

  [[nodiscard]] static constexpr std::size_t ways() { return count; }

 private:
  U8 places_[count][count];
};

template <class Mix>
SIMD_INLINE void interleave(const Mix& mix, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t groups,
                            std::byte* dst) {
  const std::size_t ways = mix.ways(), group_bytes = ways * lane_bytes;
  U8 lanes[Mix::most_ways];
  for (std::size_t group = 0; group < groups; group += lane_count, dst += lane_count * group_bytes) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < ways; ++i) {
      lanes[i] = load<U8>(src + static_cast<std::ptrdiff_t>(i) * src_pitch + group * lane_bytes);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < ways; ++i) {
      store_lanes(dst + i * lane_bytes, mix(lanes, i), static_cast<std::ptrdiff_t>(group_bytes));
    }
  }
}

template <class Mix>
SIMD_INLINE void deinterleave(const Mix& mix, const std::byte* src, std::size_t groups, std::byte* dst,
                              std::ptrdiff_t dst_pitch) {
  const std::size_t ways = mix.ways(), group_bytes = ways * lane_bytes;
  U8 lanes[Mix::most_ways];
  for (std::size_t group = 0; group < groups; group += lane_count, src += lane_count * group_bytes) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < ways; ++i) {
      lanes[i] = load_lanes(src + i * lane_bytes, static_cast<std::ptrdiff_t>(group_bytes));
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < ways; ++i) {
      store(dst + static_cast<std::ptrdiff_t>(i) * dst_pitch + group * lane_bytes, mix(lanes, i));
    }
  }
}

// Calls `function` with the mix in registers if it fits them.
template <class Function>
[[gnu::noinline]] void with_mix(const LaneMix& mix, const Function& function) {
  switch (mix.ways()) {
    case 2:
      return function(FewLanesMix<2>(mix));
    case 3:
      return function(FewLanesMix<3>(mix));
    case 4:
      return function(FewLanesMix<4>(mix));
    default:
      return function(mix);
  }
}

// Rows, or columns if `by_columns`, so few that a register has more elements, and without gaps in the result, or in the
// source: they are interleaved, or the reverse. Returns how many of the other axis are done.
std::size_t transpose_few(std::size_t item_bytes, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
                          std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch, bool by_columns) {
  const std::size_t groups = (by_columns ? rows : columns) * item_bytes / kRegisterBytes * lane_count;
  const LaneMix mix(item_bytes, by_columns ? columns : rows, !by_columns);
  with_mix(mix, [&](const auto& fastest) {
    if (by_columns) {
      deinterleave(fastest, src, groups, dst, dst_pitch);
    } else {
      interleave(fastest, src, src_pitch, groups, dst);
    }
  });
  return groups * lane_bytes / item_bytes;
}

template <int item_bytes>
void transpose_any(const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows, std::size_t columns,
                   std::byte* dst, std::ptrdiff_t dst_pitch) {
  const auto is_few = [](std::size_t items, std::ptrdiff_t pitch) {
    return items > 1 && items < kRegisterBytes / item_bytes && pitch == static_cast<std::ptrdiff_t>(items * item_bytes);
  };
  if (is_few(rows, dst_pitch)) {
    const std::size_t done = transpose_few(item_bytes, src, src_pitch, rows, columns, dst, dst_pitch, false);
    src += done * item_bytes;
    dst += static_cast<std::ptrdiff_t>(done) * dst_pitch;
    return transpose_slowly<item_bytes>(src, src_pitch, rows, columns - done, dst, dst_pitch);
  }
  if (is_few(columns, src_pitch)) {
    const std::size_t done = transpose_few(item_bytes, src, src_pitch, rows, columns, dst, dst_pitch, true);
    src += static_cast<std::ptrdiff_t>(done) * src_pitch;
    dst += done * item_bytes;
    return transpose_slowly<item_bytes>(src, src_pitch, rows - done, columns, dst, dst_pitch);
  }
  transpose_items<item_bytes>(src, src_pitch, rows, columns, dst, dst_pitch);
}

}  // namespace

void transpose(std::size_t item_bytes, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
               std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) noexcept {
  const auto of_items = item_bytes == 1   ? transpose_any<1>
                        : item_bytes == 2 ? transpose_any<2>
                        : item_bytes == 4 ? transpose_any<4>
                                          : transpose_any<8>;
  of_items(src, src_pitch, rows, columns, dst, dst_pitch);
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
