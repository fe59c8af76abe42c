// What reports on sources of 8 bits or fewer look up, by pair and policy: made once, and kept for the next request.
//
// 1. Asking the reference about 256 codes takes some 10 us, which many small requests of one kind would each wait for.
// 2. Tables of planes take some 50 us more, as long as the histogram of 2^17 bytes: they are made when so many have
//    been seen, in one request or in several.
// 3. The last few kinds of requests are kept, so that memory is bounded.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "cast/byte_fates.hpp"
#include "cast/report_planes.hpp"
#include "codec/policy.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast {

class ByteTables {
 public:
  // Kept ones, or new ones.
  [[nodiscard]] static std::shared_ptr<const ByteTables> of(DType from, DType to, const codec::Policy& policy);

  ByteTables(DType from, DType to, const codec::Policy& policy);

  [[nodiscard]] const Fates& fates() const noexcept { return fates_; }

  // For a block of so many bytes: null before they pay, and where they never do.
  [[nodiscard]] const BytePlanes* planes_for(std::size_t more_bytes) const;
  // Those that planes_for() has returned, if any.
  [[nodiscard]] const BytePlanes* made_planes() const noexcept { return made_.load(std::memory_order_acquire); }

 private:
  [[nodiscard]] bool are_for(DType from, DType to, const codec::Policy& policy) const noexcept {
    return from_ == from && to_ == to && policy_ == policy;
  }

  DType from_, to_;
  codec::Policy policy_;
  Fates fates_;
  mutable std::atomic<std::size_t> bytes_seen_ = 0;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const BytePlanes> planes_;
  mutable std::atomic<const BytePlanes*> made_ = nullptr;
};

}  // namespace tensorcast
