// SPDX-License-Identifier: Apache-2.0
#include "io/place.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/test_folder.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::io {
namespace {

namespace fs = std::filesystem;

class PlaceTest : public testing::Test {
 protected:
  PlaceTest() {
    fs::create_directories(folder_ / "models/a/unet");
    put_file(folder_ / "models/a/file", "1");
    fs::create_directory_symlink("models", folder_ / "link");
    fs::create_hard_link(folder_ / "models/a/file", folder_ / "hard");
    fs::create_symlink("models/a/file", folder_ / "soft");
  }
  [[nodiscard]] Place place(const std::string& name) const { return Place::of(folder_ / name).value(); }
  [[nodiscard]] std::string refusal(const std::string& written, bool folder, const std::string& other) const {
    const PathUse uses[] = {{.path = folder_ / other, .noun = "input", .folder = true},
                            {.path = folder_ / "models/b", .noun = "other", .folder = true}};
    const Result<void> apart = check_apart({.path = folder_ / written, .noun = "output", .folder = folder}, uses);
    return apart.ok() ? "" : apart.error().message;
  }

  TestFolder folder_;
};

TEST_F(PlaceTest, SpellingsOfOnePlace) {
  for (const char* name :
       {"models/a/file", "link/a/file", "hard", "soft", "models/./a//file", "link/../models/a/file"}) {
    EXPECT_TRUE(place("models/a/file").is(place(name))) << name;
  }
  EXPECT_FALSE(place("models/a").is(place("models")));
  EXPECT_TRUE(place("models/a/").is(place("link/a")));
}

TEST_F(PlaceTest, NamesThatDoNotExist) {
  EXPECT_TRUE(place("models/new/deep").is(place("link/new/deep/")));
  EXPECT_TRUE(place("models/new/deep").is(place("link/new/other/../deep")));
  EXPECT_TRUE(place("link/none/../a/file").is(place("hard")) || place("link/none/../a").is_below(place("models")));
  EXPECT_FALSE(place("models/new").is(place("models/news")));
  EXPECT_TRUE(place("models/new/deep").is_below(place("link/new")));
  EXPECT_TRUE(place("models/new/deep").is_below(place("link")));
  EXPECT_FALSE(place("models/new").is_below(place("models/new")));
  EXPECT_FALSE(place("models/newer").is_below(place("models/new")));
  EXPECT_FALSE(place("models").is_below(place("models/new")));
  EXPECT_TRUE(place("models").is_below(Place::of("/").value()));
}

TEST_F(PlaceTest, Urls) {
  const Place a = Place::of("s3://bucket/a").value();
  EXPECT_TRUE(a.is(Place::of("s3://bucket//a/").value()));
  EXPECT_TRUE(Place::of("s3://bucket/a/b").value().is_below(a));
  EXPECT_FALSE(Place::of("s3://bucket/ab").value().is_below(a));
  EXPECT_FALSE(a.is(place("models")));
  EXPECT_FALSE(place("models").is_below(a));
}

TEST_F(PlaceTest, AFolderThatIsReadIsNotWritten) {
  for (const char* output : {"models/a", "link/a", "link/a/"}) {
    EXPECT_EQ(refusal(output, true, "models/a"), "the output would overwrite the input") << output;
  }
  for (const char* output : {"models/a/unet", "link/a/new/deeper", "models/a/file"}) {
    EXPECT_EQ(refusal(output, false, "models/a"), "the output would be inside the folder of the input") << output;
  }
  EXPECT_EQ(refusal("models", true, "link/a"), "the input would be inside the folder of the output");
  EXPECT_EQ(refusal("link", true, "models/none/such"), "the input would be inside the folder of the output");
  EXPECT_EQ(refusal("models", true, "out"), "the other would be inside the folder of the output");
  EXPECT_EQ(refusal("models/ab", true, "models/a"), "");
  EXPECT_EQ(refusal("out/new", true, "models/a"), "");
}

}  // namespace
}  // namespace tensorcast::io
