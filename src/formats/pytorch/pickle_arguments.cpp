// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/pickle_arguments.hpp"

#include <fmt/format.h>

#include "dtype/try.hpp"

namespace tensorcast::formats::pytorch {

Result<Ref> Arguments::at(std::size_t index) const {
  const std::vector<Ref>& items = objects_[tuple_].items;
  if (index < items.size()) return items[index];
  return malformed_pickle(fmt::format("a call with {} arguments lacks one", items.size()));
}

Result<Ref> Arguments::at(std::size_t index, Kind kind) const {
  const Result<Ref> ref = at(index);
  if (!ref || objects_[*ref].kind == kind) return ref;
  return malformed_pickle(fmt::format("argument {} of a call has another type", index + 1));
}

Result<std::uint64_t> Arguments::size_at(std::size_t index) const {
  const Ref ref = TRY(at(index, Kind::integer));
  const std::int64_t size = objects_[ref].integer;
  if (size < 0) return malformed_pickle(fmt::format("a size of {}", size));
  return static_cast<std::uint64_t>(size);
}

Result<std::vector<std::int64_t>> Arguments::sizes_at(std::size_t index) const {
  const Ref ref = TRY(at(index));
  const Value& value = objects_[ref];
  if (value.kind != Kind::tuple && value.kind != Kind::list) return malformed_pickle("sizes that are not a tuple");
  const Arguments items(objects_, ref);
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < items.count(); ++i) {
    const std::uint64_t size = TRY(items.size_at(i));
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  return sizes;
}

}  // namespace tensorcast::formats::pytorch
