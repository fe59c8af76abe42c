// SPDX-License-Identifier: Apache-2.0
#include "c_files/callers_source.hpp"

#include <array>
#include <cstddef>

#include "c_api/c_call.hpp"
#include "dtype/try.hpp"

namespace tensorcast::c_api {

template <>
struct Growth<tc_source> {
  static constexpr const char* name = "tc_source";
  static constexpr std::array sizes = {offsetof(tc_source, read) + sizeof(tc_source::read)};
};

namespace {

class CallersSource final : public ByteSource {
 public:
  explicit CallersSource(const tc_source& source) : source_(source) {}

  std::uint64_t size() const override { return source_.size; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (out.empty()) return {};
    const int status = source_.read(source_.context, offset, out.data(), out.size());
    if (status == TC_OK) return {};
    const bool known = status >= TC_INVALID_ARGUMENT && status <= TC_CANCELLED;
    return Error{.code = known ? static_cast<ErrorCode>(status) : ErrorCode::io,
                 .message = formatted("the source could not read {} bytes from offset {}: its read returned {}",
                                      out.size(), offset, status)};
  }

 private:
  tc_source source_;
};

}  // namespace

Result<std::shared_ptr<ByteSource>> callers_source(const tc_source* source) {
  if (source == nullptr) return invalid("the source is null");
  const tc_source given = TRY(read_struct(tc_source TC_SOURCE_INIT, source));
  if (given.read == nullptr) return invalid("the source's read is null");
  return std::shared_ptr<ByteSource>(std::make_shared<CallersSource>(given));
}

}  // namespace tensorcast::c_api
