// SPDX-License-Identifier: Apache-2.0
#include "io/sha256.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace tensorcast::io {
namespace {

std::string hashed(const Sha256Way& way, std::string_view text) {
  Sha256 hash(way.hash_blocks);
  hash.update(text);
  return hash.digest();
}

// What OpenSSL's libcrypto says.
std::string expected(std::string_view text) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EXPECT_EQ(EVP_Digest(text.data(), text.size(), bytes, &size, EVP_sha256(), nullptr), 1);
  std::string digits;
  for (unsigned i = 0; i < size; ++i) {
    digits += "0123456789abcdef"[bytes[i] >> 4];
    digits += "0123456789abcdef"[bytes[i] & 15];
  }
  return digits;
}

std::string random_text(std::size_t size) {
  std::mt19937 random(20261125);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class Sha256Test : public testing::TestWithParam<Sha256Way> {};

// The examples of FIPS 180-2, appendix B, and of NIST's page of examples for it.
TEST_P(Sha256Test, HashesTheExamplesOfTheStandard) {
  EXPECT_EQ(hashed(GetParam(), ""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hashed(GetParam(), "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hashed(GetParam(), "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hashed(GetParam(),
                   "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hashed(GetParam(), std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_P(Sha256Test, EqualsLibcryptoForEverySizeAroundBlocks) {
  const std::string text = random_text(1000);
  for (std::size_t size = 0; size <= 300; ++size) {
    const std::string_view part = std::string_view(text).substr(size, size);
    ASSERT_EQ(hashed(GetParam(), part), expected(part)) << size << " bytes";
  }
}

TEST_P(Sha256Test, DoesNotDependOnHowTheBytesArrive) {
  const std::string text = random_text(100000);
  std::mt19937 random(7);
  for (const std::size_t longest : {3, 64, 65, 200, 5000}) {
    Sha256 hash(GetParam().hash_blocks);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min(random() % (longest + 1), text.size() - at);
      hash.update(std::string_view(text).substr(at, size));
      at += size;
    }
    ASSERT_EQ(hash.digest(), expected(text)) << "in parts of up to " << longest << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Sha256Test, testing::ValuesIn(sha256_ways().begin(), sha256_ways().end()),
                         [](const auto& way) { return std::string(way.param.name); });

TEST(Sha256, TakesTheFastestWayThatTheCpuHas) {
  const std::string text = random_text(12345);
  EXPECT_EQ(sha256_of(text), expected(text));
  EXPECT_EQ(std::string_view(sha256_ways().back().name), "portable");
}

}  // namespace
}  // namespace tensorcast::io
