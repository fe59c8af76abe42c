// How a conversion that is larger than the caches goes through memory.
#pragma once

#include <cstddef>

#include "tensorcast/dtype.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {

struct Streaming {
  // Results go through a buffer in the first-level cache and past the caches from there, since reading the target from
  // memory only to overwrite it costs bandwidth. Otherwise the kernel writes to the target itself, all in one go.
  bool around_caches = true;
  std::size_t piece_bytes = 0;   // of the wider type, into the buffer at a time
  std::size_t pieces_ahead = 0;  // so far ahead the source is asked for; 0: the hardware's prefetching does better
};

// `is_light`: done by a kernel that hardly does more than load and store.
[[nodiscard]] Streaming streaming_of(Target target, DType from, DType to, bool is_light);

}  // namespace tensorcast
