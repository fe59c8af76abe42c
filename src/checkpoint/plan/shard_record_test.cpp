// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/shard_record.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tensorcast::checkpoint {
namespace {

DoneShard some_shard() {
  DoneShard done{
      .sha256 = std::string(64, 'a'), .bytes = 7, .fingerprint = "f", .tensors = {{.name = "x\n"}, {.name = ""}}};
  done.tensors[0].damage = "gone";
  done.tensors[0].remedy = "`scale`";
  done.tensors[1].report.emplace();
  done.tensors[1].report->count = 3;
  done.tensors[1].report->max_rel_error = std::numeric_limits<double>::infinity();
  return done;
}

TEST(ShardRecord, IsReadAsItWasWritten) {
  const std::string text = shard_record_text("model.safetensors", some_shard());
  const std::optional<DoneShard> read = parse_shard_record(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->bytes, 7u);
  EXPECT_EQ(read->fingerprint, "f");
  ASSERT_EQ(read->tensors.size(), 2u);
  EXPECT_EQ(read->tensors[0].name, "x\n");
  EXPECT_EQ(read->tensors[0].damage, "gone");
  EXPECT_EQ(read->tensors[0].remedy, "`scale`");
  EXPECT_FALSE(read->tensors[0].report.has_value());
  ASSERT_TRUE(read->tensors[1].report.has_value());
  EXPECT_EQ(read->tensors[1].report->count, 3u);
  EXPECT_EQ(read->tensors[1].report->max_rel_error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(shard_record_text("model.safetensors", *read), text);
}

TEST(ShardRecord, OtherTextIsNone) {
  DoneShard done = some_shard();
  done.sha256 = "short";
  const std::string text = shard_record_text("f", some_shard());
  for (const std::string& other : {std::string(), std::string("[]"), std::string("{}"), text.substr(0, text.size() / 2),
                                   shard_record_text("f", done)}) {
    EXPECT_FALSE(parse_shard_record(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace tensorcast::checkpoint
