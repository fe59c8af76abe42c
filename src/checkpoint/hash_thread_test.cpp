#include "checkpoint/hash_thread.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <span>
#include <string>

namespace tensorcast::checkpoint {
namespace {

TEST(HashThread, HashesTheBlocksInOrder) {
  const std::string text(100000, 'x');
  HashThread hash;
  std::string all;
  for (const std::size_t bytes : {0, 1, 64, 99999}) {
    hash.begin(std::as_bytes(std::span(text).first(bytes)));
    hash.wait();
    all += text.substr(0, bytes);
  }
  EXPECT_EQ(hash.digest(), io::sha256_of(all));
}

TEST(HashThread, MayEndWithoutADigest) {
  const std::string text = "x";
  HashThread hash;
  hash.begin(std::as_bytes(std::span(text)));
}

}  // namespace
}  // namespace tensorcast::checkpoint
