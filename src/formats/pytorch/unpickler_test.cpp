// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/unpickler.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "formats/pytorch/checkpoint_tree.hpp"

namespace tensorcast::formats::pytorch {
namespace {

Result<CheckpointTree> tree_of(const std::string& pickle) {
  io::MemoryBudget budget(pickle.size());
  const std::shared_ptr<ByteSource> source = memory_source(std::as_bytes(std::span(pickle)));
  Objects objects(budget);
  WindowReader input(*source, 0, budget, malformed_pickle);
  const Result<Ref> root = unpickle(input, objects);
  if (!root) return root.error();
  return sort_checkpoint(objects, *root);
}

// Returns the plain data of a pickle as JSON, or the message of its error.
std::string plain(const std::string& pickle) {
  const Result<CheckpointTree> tree = tree_of(pickle);
  return tree ? tree->other_data : tree.error().message;
}

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST(Unpickler, NumbersOfEveryProtocol) {
  EXPECT_EQ(plain("I01\n."), "true\n");
  EXPECT_EQ(plain("I-12\n."), "-12\n");
  EXPECT_EQ(plain("L99999999999999999999L\n."), "99999999999999999999\n");
  EXPECT_EQ(plain("F0.5\n."), "0.5\n");
  EXPECT_EQ(plain(bytes({'K', 200, '.'})), "200\n");
  EXPECT_EQ(plain(bytes({'M', 1, 2, '.'})), "513\n");
  EXPECT_EQ(plain(bytes({'J', 255, 255, 255, 255, '.'})), "-1\n");
  EXPECT_EQ(plain(bytes({'G', 0x3F, 0xF8, 0, 0, 0, 0, 0, 0, '.'})), "1.5\n");
  EXPECT_EQ(plain(bytes({'G', 0x7F, 0xF8, 0, 0, 0, 0, 0, 0, '.'})), "\"NaN\"\n");
}

TEST(Unpickler, LongsAreExact) {
  EXPECT_EQ(plain(bytes({0x8a, 0, '.'})), "0\n");
  EXPECT_EQ(plain(bytes({0x8a, 1, 0x80, '.'})), "-128\n");
  EXPECT_EQ(plain(bytes({0x8a, 2, 0xFF, 0, '.'})), "255\n");
  EXPECT_EQ(plain(bytes({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, '.'})), "9223372036854775808\n");
  EXPECT_EQ(plain(bytes({0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 0x80, '.'})), "-9223372036854775808\n");
  EXPECT_EQ(plain(bytes({0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 0x7F, 255, '.'})), "-9223372036854775809\n");
}

TEST(Unpickler, PowersOfTenAreExact) {
  std::string power = bytes({1});
  std::string digits = "1";
  for (int exponent = 0; exponent < 2400; ++exponent) {
    const bool has_sign = (static_cast<unsigned char>(power.back()) & 0x80) == 0;
    const std::string content = has_sign ? power : power + '\0';
    const int size = static_cast<int>(content.size());
    ASSERT_EQ(plain(bytes({0x8b, size & 255, size >> 8, 0, 0}) + content + "."), digits + "\n");
    unsigned carry = 0;
    for (char& byte : power) {
      carry += static_cast<unsigned char>(byte) * 10u;
      byte = static_cast<char>(carry);
      carry >>= 8;
    }
    if (carry != 0) power += static_cast<char>(carry);
    digits += '0';
  }
}

TEST(Unpickler, TheLastMetadataOfAStateDictCounts) {
  // An OrderedDict with attributes: BUILD.
  const std::string dict = "ccollections\nOrderedDict\n)R(S'a'\nI1\nu";
  EXPECT_EQ(plain(dict + "}(S'_metadata'\nI2\nS'b'\nI3\nS'_metadata'\nI4\nub."),
            "{\n  \"a\": 1,\n  \"_metadata\": 4\n}\n");
  EXPECT_EQ(plain(dict + "}(S'b'\nI3\nub."), "{\n  \"a\": 1\n}\n");
}

TEST(Unpickler, ContainersAndTheMemo) {
  EXPECT_EQ(plain("(lp0\nI1\nag0\n0."), "[1]\n");
  EXPECT_EQ(plain("(I1\nI2\nt."), "[1,2]\n");
  EXPECT_EQ(plain("}(S'a'\nNS'a'\nI2\nu."), "{\n  \"a\": 2\n}\n") << "a later value replaces an earlier one";
  EXPECT_EQ(plain(bytes({0x80, 4, 0x8f, '(', 'K', 1, 0x90, '.'})), "[1]\n");
  EXPECT_EQ(plain("(I1\n1N."), "null\n");
  EXPECT_EQ(plain("N2\x86."), "[null,null]\n");
}

TEST(Unpickler, NamesThatAreAllowed) {
  EXPECT_EQ(plain("ccollections\nOrderedDict\n)R."), "") << "nothing is left of an empty state_dict";
  EXPECT_EQ(plain("ctorch\nfloat32\n."), "\"torch.float32\"\n");
  EXPECT_EQ(plain("ctorch\ndevice\n(S'cuda'\nI1\ntR."), "\"cuda:1\"\n");
  EXPECT_EQ(plain("c__builtin__\nset\n((lI1\natR."), "[1]\n");
}

TEST(Unpickler, OtherNamesAreErrorsThatSayThem) {
  EXPECT_NE(plain("cposix\nsystem\n(S'true'\ntR.").find("posix.system"), std::string::npos);
  EXPECT_NE(plain("c__builtin__\neval\n(S'1'\ntR.").find("builtins.eval"), std::string::npos);
}

TEST(Unpickler, ClassesInsideOfClassesAndMethodsAreNames) {
  const std::string inner = "c__builtin__\ngetattr\n(ca\nOuter\nS'Inner'\ntR";
  EXPECT_EQ(plain(inner + "."), "{\"object\":\"a.Outer.Inner\"}\n");
  EXPECT_EQ(plain(inner + ")R."), "{\"object\":\"a.Outer.Inner\"}\n");
  EXPECT_EQ(plain(inner + ")RS'a'\nI1\ns."), "{\n  \"a\": 1\n}\n") << "a dict";
  EXPECT_EQ(plain("c__builtin__\ngetattr\n(ca\nB\n)RS'run'\ntR."), "{\"object\":\"a.B.run\"}\n");
}

TEST(Unpickler, ObjectsOfOldClassesOfPython2) {
  EXPECT_EQ(plain("(coptparse\nValues\no}S'lr'\nI1\nsb."), "{\"object\":\"optparse.Values\"}\n");
  EXPECT_EQ(plain("(I1\nioptparse\nValues\n}S'lr'\nI1\nsb."), "{\"object\":\"optparse.Values\"}\n");
  EXPECT_NE(plain("(o.").find("lacks its operands"), std::string::npos);
  EXPECT_NE(plain("o.").find("lacks its mark"), std::string::npos);
}

TEST(Unpickler, ClassesOfModulesInTheOlderFormat) {
  EXPECT_EQ(plain("(S'module'\nctorch.nn\nReLU\nS'activation.py'\nS'class ReLU'\ntQ)R."),
            "{\"object\":\"torch.nn.ReLU\"}\n");
}

TEST(Unpickler, ObjectsOfOtherClassesAreNamed) {
  EXPECT_EQ(plain("(S'a'\ncargparse\nNamespace\n)R}S'lr'\nI1\nsbd."),
            "{\n  \"a\": {\"object\":\"argparse.Namespace\"}\n}\n");
  EXPECT_EQ(plain("ccopyreg\n_reconstructor\n(cargparse\nNamespace\ncbuiltins\nobject\nNtR."),
            "{\"object\":\"argparse.Namespace\"}\n");
  EXPECT_EQ(plain("cargparse\nNamespace\n)}" + bytes({0x92, '.'})), "{\"object\":\"argparse.Namespace\"}\n");
  EXPECT_EQ(plain("ceasydict\nEasyDict\n)RS'a'\nI1\ns."), "{\n  \"a\": 1\n}\n") << "a dict of another class";
  EXPECT_EQ(plain("cx\nList\n)R(I1\nI2\ne."), "[1,2]\n");
  EXPECT_EQ(plain("cx\nList\n)R(I1\nI2\neS'a'\nI1\ns."), "[1,2]\n") << "it has entries, too";
  EXPECT_NE(plain("(tI1\na.").find("not their container"), std::string::npos);
  EXPECT_EQ(plain("(ca\nB\n)Rp0\ng0\nca\nC\nl."), "[{\"object\":\"a.B\"},{\"object\":\"a.B\"},{\"object\":\"a.C\"}]\n");
  EXPECT_EQ(plain("ca\nB\n)Rp0\ng0\nb."), "{\"object\":\"a.B\"}\n") << "it has itself inside";
  EXPECT_NE(plain("c\xFF\nx\n.").find("not UTF-8"), std::string::npos);
}

TEST(Unpickler, TypesAndEmptyBytesOfProtocol2) {
  EXPECT_EQ(plain("c__builtin__\nbytes\n)R."), "{\"bytes\":\"\"}\n");
  for (const char* name : {"long", "unicode", "bytes", "Ellipsis", "len", "ValueError"}) {
    EXPECT_EQ(plain(std::string("c__builtin__\n") + name + "\n."),
              std::string("{\"object\":\"builtins.") + name + "\"}\n");
  }
  EXPECT_EQ(plain("c__builtin__\ntype\n(NtR."), "{\"object\":\"builtins.type\"}\n");
}

TEST(Unpickler, KeysAreNamedAsPythonPrintsThem) {
  EXPECT_EQ(plain("}((I1\ntI3\nu."), "{\n  \"(1,)\": 3\n}\n");
  EXPECT_EQ(plain("}((S'a'\nI1\ntI2\nu."), "{\n  \"('a', 1)\": 2\n}\n");
  EXPECT_EQ(plain("}((I1\n(NF1.5\nttI3\nu."), "{\n  \"(1, (None, 1.5))\": 3\n}\n");
  EXPECT_EQ(plain("}(C\x01kI2\nu."), "{\n  \"b'k'\": 2\n}\n");
  EXPECT_EQ(plain("}(ca\nB\n)RI2\nu."), "{\n  \"<a.B>\": 2\n}\n");
  EXPECT_EQ(plain("}((I1\nS'a'\n\x91I2\nu."), "{\n  \"frozenset({1, 'a'})\": 2\n}\n");
  EXPECT_EQ(plain("}((\x91I2\nu."), "{\n  \"frozenset()\": 2\n}\n");
  EXPECT_EQ(plain("}(cnumpy\ndtype\n(S'f4'\ntRI2\nu."), "{\n  \"<f4\": 2\n}\n");
  EXPECT_NE(plain("}((lI2\nu.").find("no dict can have"), std::string::npos);
  // One value is written of two that have one key in JSON.
  EXPECT_EQ(plain("}(I0\nI1\nS'0'\nI2\nu."), "{\n  \"0\": 1\n}\n");
}

TEST(Unpickler, HalfSurrogatesAreReplaced) {
  EXPECT_EQ(plain("X" + bytes({4, 0, 0, 0, 'a', 0xED, 0xA0, 0x80}) + "."), "\"a\xEF\xBF\xBD\"\n");
  EXPECT_NE(plain("X" + bytes({3, 0, 0, 0, 0xED, 0xA0, 0x20}) + ".").find("not UTF-8"), std::string::npos);
}

// Sparse and quantized tensors, and tensors inside of objects, are one tensor each that cannot be read.
TEST(Unpickler, WhatCannotBeReadIsOneTensorOfMany) {
  const auto problem = [](const std::string& value) {
    const Result<CheckpointTree> tree = tree_of("}(S'w'\n" + value + "S'b'\nI1\nu.");
    if (!tree) return tree.error().message;
    if (tree->other_data != "{\n  \"b\": 1\n}\n") return "other data: " + tree->other_data;
    if (tree->tensors.size() != 1 || tree->tensors[0].name != "w") return std::string("no tensor w");
    return tree->tensors[0].problem ? tree->tensors[0].problem->message : "";
  };
  EXPECT_EQ(problem("ctorch._utils\n_rebuild_sparse_tensor\n(I1\ntR"), "the checkpoint has a sparse tensor");
  EXPECT_EQ(problem("ctorch._utils\n_rebuild_qtensor\n(I1\ntR"), "the checkpoint has a quantized tensor");
  EXPECT_NE(problem("ctorch._utils\n_rebuild_of_tomorrow\n)R").find("_rebuild_of_tomorrow"), std::string::npos);
  const std::string tensor =
      "ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI2\ntQI0\n(I2\nt(I1\ntI00\n"
      "}tR";
  EXPECT_EQ(problem(tensor), "");
  EXPECT_EQ(problem("ca\nB\n(" + tensor + "tR"), "the checkpoint has tensors inside of an object of a.B");
  EXPECT_EQ(problem("ca\nB\n)R" + tensor + "b"), "the checkpoint has tensors inside of an object of a.B");
  EXPECT_EQ(problem("ca\nB\n)R(I1\neS'x'\n" + tensor + "s"), "the checkpoint has tensors inside of an object of a.B");
  EXPECT_EQ(problem("}(" + tensor + "I1\nu"),
            "the checkpoint has a dict whose keys are tensors, or have tensors inside");
  EXPECT_EQ(problem("}((I1\n" + tensor + "tI1\nu"),
            "the checkpoint has a dict whose keys are tensors, or have tensors inside");
  EXPECT_EQ(problem("c__builtin__\ngetattr\n(c__builtin__\nint\nS'eval'\ntR"),
            "the checkpoint names builtins.int.eval, which no tensor or data needs");
  EXPECT_EQ(problem("c__builtin__\ngetattr\n(S'a'\nS'upper'\ntR"),
            "the checkpoint names builtins.getattr, which no tensor or data needs");
  EXPECT_EQ(problem("ctorch.storage\n_load_from_bytes\n(S'a'\ntR"),
            "the checkpoint has a tensor as pickle.dump writes it");
  EXPECT_EQ(
      problem("ctorch._utils\n_rebuild_tensor_v3\n((S'storage'\nctorch.storage\nUntypedStorage\nS'0'\nS'cpu'\nI2\n"
              "tQI0\n(I2\nt(I1\ntI00\n}ctorch\nbits8\ntR"),
      "the checkpoint has a tensor of torch.bits8, which is not read");
  EXPECT_EQ(problem("ca\nB\n)RS'x'\nca\nC\n(" + tensor + "tRs").substr(0, 11), "no tensor w");  // it is w.x
}

TEST(Unpickler, MemoryIsBoundedBeforeItIsTaken) {
  std::string many = "\x80\x02";
  many.append(std::size_t{1} << 20, ']');
  EXPECT_NE(plain(many + "0.").find("memory"), std::string::npos);
  std::string doubling("\x80\x02]q\x00", 5);
  for (int i = 0; i < 60; ++i) {
    doubling += bytes({'0', ']', '(', 'h', i, 'h', i, 'e', 'q', i + 1});
  }
  EXPECT_NE(plain(doubling + ".").find("memory"), std::string::npos);
  // Storages whose keys are one long text.
  std::string storages =
      "ctorch\nFloatStorage\np1\n0X" + bytes({0, 0, 16, 0}) + std::string(std::size_t{1} << 20, 'k') + "p2\n0(lp3\n";
  for (int i = 0; i < 1000; ++i) storages += "(S'storage'\ng1\ng2\nS'cpu'\nI0\ntQa";
  EXPECT_NE(plain(storages + ".").find("memory"), std::string::npos);
}

}  // namespace
}  // namespace tensorcast::formats::pytorch
