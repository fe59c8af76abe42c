// How reports on large tensors of 8 bits or fewer count: which tables they look bytes up in
// (kernels/tally/byte_planes.hpp), chosen to be few, and what a report's numbers are made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cast/byte_fates.hpp"
#include "cast/report_bytes.hpp"
#include "kernels/tally/byte_planes.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {

struct BytePlanes {
  struct Part {
    std::size_t plane = 0;
    int shift = 0;
  };
  struct Parts {
    std::vector<Part> parts;
    bool is_rest_of_signal = false;  // what the parts leave of it, whose unit is `signal_shift` bits coarser
    int signal_shift = 0;
    int further_bits = 0;  // that the sum has below the unit: zeros
  };

  struct EventPlane {
    std::size_t plane = 0;
    std::uint32_t first = 0, second = 0;  // events; the second ones of a pair
  };

  // None where there would be too many.
  static std::unique_ptr<const BytePlanes> make(DType from, const Fates& fates);

  void add(const std::byte* data, std::size_t bytes, ByteReporter::Count& into) const;
  // Adds the counts and maxima, and returns the sums of squares.
  std::pair<SquareSums, SquareSums> read(const ByteReporter::Count& count, CastReport& report) const;

  kernels::PlaneSet planes;
  bool has_narrow_planes = false;
  bool has_magnitudes = false;  // bytes are floats whose sign is bit 7
  std::vector<EventPlane> events;
  std::array<Parts, square_scales> signal, noise;  // by scale
  std::array<kernels::ByteRanks, 2> ranks = {};    // of absolute and relative errors
  std::array<std::vector<double>, 2> ranked;
};

}  // namespace tensorcast
