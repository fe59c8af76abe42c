// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/byte_source.hpp"

#include <algorithm>

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

ByteSource::~ByteSource() = default;

std::shared_ptr<ByteSource> memory_source(std::span<const std::byte> bytes) {
  return std::make_shared<MemorySource>(bytes);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
