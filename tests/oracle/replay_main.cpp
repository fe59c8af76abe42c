// SPDX-License-Identifier: Apache-2.0
// oracle_replay FROM ELEMENT TO [option=value ...]: prints the oracle's and the engine's result for one element.
#include <cstdio>
#include <exception>

#include "check.hpp"
#include "golden.hpp"

namespace {

int replay(int argc, char** argv) {
  using namespace oracle;
  const Type from = type_of(argv[1]);
  const Type to = type_of(argv[3]);
  const std::uint64_t code = parse_element(from, argv[2]);
  tc_cast_options options = default_options();
  for (int i = 4; i < argc; ++i) set_option(options, argv[i]);

  std::printf("source   %s\n", describe(decode(from, code)).c_str());
  const Outcome expected = convert(from, code, to, options);
  if (admission(from, to, options) != TC_OK) {
    std::printf("oracle   this version has no such conversion\n");
  } else if (expected.refused) {
    std::printf("oracle   refuses the element\n");
  } else {
    std::printf("oracle   0x%llx = %s, %s\n", static_cast<unsigned long long>(expected.code),
                describe(decode(to, expected.code)).c_str(), describe_events(expected.events).c_str());
  }
  // The element alone, and at every index of a vector: kernels treat tails differently.
  bool same = true;
  const CAbiResult alone = run_tc_cast(from, std::vector{code}, to, options);
  for (std::size_t count = 1; count <= 130 && alone.status == TC_OK; ++count) {
    const CAbiResult many = run_tc_cast(from, std::vector(count, code), to, options);
    for (std::size_t i = 0; i < count; ++i) {
      if (many.codes[i] == alone.codes[0]) continue;
      std::printf("tc_cast  0x%llx as element %zu of %zu\n", static_cast<unsigned long long>(many.codes[i]), i, count);
      same = false;
    }
  }
  if (alone.status == TC_OK) {
    std::printf("tc_cast  0x%llx = %s\n", static_cast<unsigned long long>(alone.codes[0]),
                describe(decode(to, alone.codes[0])).c_str());
  } else {
    std::printf("tc_cast  fails: %s\n", alone.message.c_str());
  }
  for (const std::string& complaint : disagreements(from, std::vector{code}, to, std::vector{options})) {
    std::printf("%s\n", complaint.c_str());
    same = false;
  }
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: oracle_replay FROM ELEMENT TO [option=value ...]\n");
    return 2;
  }
  try {
    return replay(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oracle_replay: %s\n", error.what());
    return 2;
  }
}
