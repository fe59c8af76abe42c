// What minizip reads or writes through: a position in one of our files, and the first error, since minizip only knows
// that there was one.
#pragma once

#include <minizip/ioapi.h>

#include <cstdint>
#include <optional>

#include "tensorcast/error.hpp"

namespace tensorcast::formats::npz {

// `File` has size(), and outlives the stream.
template <class File>
struct ZipStream {
  explicit ZipStream(File& in) : file(in) {}

  static ZipStream& of(void* self) { return *static_cast<ZipStream*>(self); }

  // All but reading and writing.
  zlib_filefunc64_def functions() {
    zlib_filefunc64_def functions{};
    functions.zopen64_file = [](void* self, const void*, int) { return self; };
    functions.ztell64_file = [](void* self, void*) -> ZPOS64_T { return of(self).position; };
    functions.zseek64_file = seek;
    functions.zclose_file = [](void*, void*) { return 0; };
    functions.zerror_file = [](void* self, void*) { return of(self).error ? 1 : 0; };
    functions.opaque = this;
    return functions;
  }

  // Not beyond the end.
  static long seek(void* self, void*, ZPOS64_T offset, int origin) {
    ZipStream& stream = of(self);
    const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                               : origin == ZLIB_FILEFUNC_SEEK_CUR ? stream.position
                                                                  : stream.file.size();
    std::uint64_t target = 0;
    if (__builtin_add_overflow(base, offset, &target) || target > stream.file.size()) return -1;
    stream.position = target;
    return 0;
  }

  File& file;
  std::uint64_t position = 0;
  std::optional<Error> error;
};

}  // namespace tensorcast::formats::npz
