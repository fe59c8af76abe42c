// SPDX-License-Identifier: Apache-2.0
// tensorcast_instructions FROM TO COUNT CALLS: converts COUNT elements CALLS times and does nothing else, for a tool
// that counts instructions. The difference of two runs with different CALLS has no start-up in it.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tensorcast/c_api.h"
#include "tensorcast/dtype.hpp"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: tensorcast_instructions FROM TO COUNT CALLS\n", stderr);
    return 2;
  }
  const tc_dtype from = tc_dtype_parse(argv[1]);
  const tc_dtype to = tc_dtype_parse(argv[2]);
  const std::size_t count = std::strtoul(argv[3], nullptr, 10);
  const std::size_t calls = std::strtoul(argv[4], nullptr, 10);
  const std::vector<unsigned char> src(tc_storage_bytes(from, count), 0x3c);
  std::vector<unsigned char> dst(tc_storage_bytes(to, count));
  for (std::size_t i = 0; i < calls; ++i) {
    if (tc_cast(src.data(), from, dst.data(), to, count, nullptr) != TC_OK) {
      std::fprintf(stderr, "tensorcast_instructions: %s\n", tc_last_error());
      return 1;
    }
  }
}
