// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/json_tree.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tensorcast::checkpoint {
namespace {

JsonTree parsed(std::string_view text) {
  Result<JsonTree> tree = JsonTree::parse(text);
  EXPECT_TRUE(tree) << text;
  return std::move(tree).value();
}

std::string changed(const JsonTree& tree) {
  const Result<std::string> text = tree.changed();
  EXPECT_TRUE(text) << text.error().describe();
  return *text;
}

JsonTree::Node member(const JsonTree& tree, JsonTree::Node node, std::string_view key) {
  const std::optional<JsonTree::Node> found = tree.find(node, key);
  EXPECT_TRUE(found) << key;
  return found.value_or(node);
}

TEST(JsonTree, HasMembersInTheirOrder) {
  const JsonTree tree = parsed(" {\"b\": {\"x\": 1, \"\\u0061\" : [{\"y\": 2}], \"x\": {}}, \"a\":null} ");
  std::vector<std::string> seen;
  for (const JsonTree::Node outer : tree.members(tree.root())) {
    seen.push_back(tree.key(outer) + "=" + std::string(tree.text(outer)));
    for (const JsonTree::Node inner : tree.members(outer)) {
      seen.push_back(tree.key(outer) + "." + tree.key(inner) + "=" + std::string(tree.text(inner)));
    }
  }
  const std::vector<std::string> wanted = {"b={\"x\": 1, \"\\u0061\" : [{\"y\": 2}], \"x\": {}}", "b.x=1",
                                           "b.a=[{\"y\": 2}]", "b.x={}", "a=null"};
  EXPECT_EQ(seen, wanted);
}

TEST(JsonTree, HasEveryValueWithItsPlace) {
  const JsonTree tree = parsed(" {\"a\": [1, {\"b\\\"\": \"x,]}\"}, []], \"c\":{} , \"d\" : null}");
  std::vector<std::string> seen;
  for (JsonTree::Node node = 0; node <= tree.root(); ++node) {
    seen.push_back(tree.key(node) + "/" + std::string(tree.text(node)));
  }
  const std::vector<std::string> wanted = {"/1",
                                           "b\"/\"x,]}\"",
                                           "/{\"b\\\"\": \"x,]}\"}",
                                           "/[]",
                                           "a/[1, {\"b\\\"\": \"x,]}\"}, []]",
                                           "c/{}",
                                           "d/null",
                                           "/{\"a\": [1, {\"b\\\"\": \"x,]}\"}, []], \"c\":{} , \"d\" : null}"};
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(parsed("\xEF\xBB\xBF\n1").text(0), "1");
}

TEST(JsonTree, FailsOnOtherText) {
  const std::string deep = std::string(101, '[') + std::string(101, ']');
  for (const std::string& text : {std::string(), std::string("{"), std::string("{\"a\" 1}"), std::string("[1,]"),
                                  std::string("{}\0", 3), deep, std::string(1000000, '[')}) {
    const Result<JsonTree> tree = JsonTree::parse(text);
    ASSERT_FALSE(tree);
    EXPECT_EQ(tree.error().code, ErrorCode::parse);
  }
  EXPECT_TRUE(JsonTree::parse(deep.substr(1, 200)));
}

TEST(JsonTree, RemovesMembersSideBySide) {
  const std::string text = "{\n  \"a\": 1,\n  \"b\" : 2 ,\n\t\"c\": 3\n}\n";
  const auto without = [&](std::string_view keys) {
    JsonTree tree = parsed(text);
    for (const char key : keys) tree.remove(member(tree, tree.root(), std::string(1, key)));
    return changed(tree);
  };
  EXPECT_EQ(without(""), text);
  EXPECT_EQ(without("a"), "{\n  \"b\" : 2 ,\n\t\"c\": 3\n}\n");
  EXPECT_EQ(without("b"), "{\n  \"a\": 1,\n  \"c\": 3\n}\n");
  EXPECT_EQ(without("c"), "{\n  \"a\": 1,\n  \"b\" : 2\n}\n");
  EXPECT_EQ(without("ab"), "{\n  \"c\": 3\n}\n");
  EXPECT_EQ(without("bc"), "{\n  \"a\": 1\n}\n");
  EXPECT_EQ(without("ac"), "{\n  \"b\" : 2\n}\n");
  EXPECT_EQ(without("abc"), "{\n}\n");
}

TEST(JsonTree, AddsMembers) {
  const auto with = [](std::string_view text, bool first, bool last, bool clear) {
    JsonTree tree = parsed(text);
    if (clear) {
      for (const JsonTree::Node each : tree.members(tree.root())) tree.remove(each);
    }
    if (first) tree.prepend(tree.root(), "p", "[1]");
    if (last) tree.append(tree.root(), "\"", "2");
    return changed(tree);
  };
  EXPECT_EQ(with("{}", true, false, false), "{\"p\": [1]}");
  EXPECT_EQ(with("{\"a\":1}", true, false, false), "{\"p\": [1], \"a\":1}");
  EXPECT_EQ(with("{\"a\":1}", false, true, false), "{\"a\":1,\n  \"\\\"\": 2}");
  EXPECT_EQ(with("{}", false, true, false), "{\n  \"\\\"\": 2\n}");
  EXPECT_EQ(with("{ \"a\": 1 }", false, true, true), "{\n  \"\\\"\": 2\n}");
  EXPECT_EQ(with("{ \"a\": 1, \"b\": 2 }", true, true, false), "{\"p\": [1],  \"a\": 1, \"b\": 2,\n  \"\\\"\": 2 }");
  EXPECT_EQ(with("{\"a\": 1}", true, true, true), "{\"p\": [1],\n  \"\\\"\": 2\n}");
}

TEST(JsonTree, TakesChangesThatOverlap) {
  JsonTree tree = parsed("{\"a\": {\"b\": {\"c\": 1}, \"d\": 2}, \"e\": 3}");
  const JsonTree::Node a = member(tree, tree.root(), "a"), b = member(tree, a, "b"), c = member(tree, b, "c");
  tree.replace(c, "7");
  tree.rename(c, "C");
  EXPECT_EQ(changed(tree), "{\"a\": {\"b\": {\"C\": 7}, \"d\": 2}, \"e\": 3}");
  tree.replace(b, "null");
  tree.rename(member(tree, a, "d"), "D");
  EXPECT_EQ(changed(tree), "{\"a\": {\"b\": null, \"D\": 2}, \"e\": 3}");
  tree.remove(a);
  tree.replace(member(tree, tree.root(), "e"), "{}");
  EXPECT_EQ(changed(tree), "{\"e\": {}}");
}

TEST(JsonTree, WritesNothingButWhatIsMeant) {
  for (const char* wrong : {"", "1, \"x\": 2", "1 ", "{", "\"", "NaNs"}) {
    JsonTree tree = parsed("{\"a\": 1, \"b\": 2}");
    tree.replace(member(tree, tree.root(), "a"), wrong);
    const Result<std::string> text = tree.changed();
    ASSERT_FALSE(text) << wrong;
    EXPECT_EQ(text.error().code, ErrorCode::internal);
  }
  JsonTree list = parsed("[]");
  list.prepend_element(list.root(), "1, 2");
  EXPECT_FALSE(list.changed());
}

TEST(JsonTree, ChangesElements) {
  const auto with_two = [](std::string_view text) {
    JsonTree tree = parsed(text);
    tree.prepend_element(tree.root(), "\"x\"");
    tree.prepend_element(tree.root(), "\"y\"");
    return changed(tree);
  };
  EXPECT_EQ(with_two("[]"), "[\"x\", \"y\"]");
  EXPECT_EQ(with_two("[\n]"), "[\"x\", \"y\"\n]");
  EXPECT_EQ(with_two("[\n  1,[2, 3] ]"), "[\"x\", \"y\", \n  1,[2, 3] ]");
  JsonTree tree = parsed("[ 1 ,[2, 3]]");
  tree.replace_element(tree.members(tree.root()).back(), {"4", "5"});
  EXPECT_EQ(changed(tree), "[ 1 ,4, 5]");
}

}  // namespace
}  // namespace tensorcast::checkpoint
