// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/shard_record.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tensorcast::checkpoint {
namespace {

DoneShard some_shard() {
  DoneShard done{.sha256 = std::string(64, 'a'), .bytes = 7, .fingerprint = "f", .tensors = 9, .notes = {}};
  done.notes[2].damage = "gone";
  done.notes[2].remedy = "`scale`";
  done.notes[7].report.emplace();
  done.notes[7].report->count = 3;
  done.notes[7].report->max_rel_error = std::numeric_limits<double>::infinity();
  return done;
}

TEST(ShardRecord, IsReadAsItWasWritten) {
  const std::string text = shard_record_text("model.safetensors", some_shard());
  const std::optional<DoneShard> read = parse_shard_record(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->bytes, 7u);
  EXPECT_EQ(read->fingerprint, "f");
  EXPECT_EQ(read->tensors, 9u);
  ASSERT_EQ(read->notes.size(), 2u);
  EXPECT_EQ(read->notes.at(2).damage, "gone");
  EXPECT_EQ(read->notes.at(2).remedy, "`scale`");
  EXPECT_FALSE(read->notes.at(2).report.has_value());
  ASSERT_TRUE(read->notes.at(7).report.has_value());
  EXPECT_EQ(read->notes.at(7).report->count, 3u);
  EXPECT_EQ(read->notes.at(7).report->max_rel_error, std::numeric_limits<double>::infinity());
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
