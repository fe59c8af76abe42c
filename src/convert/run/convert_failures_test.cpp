// SPDX-License-Identifier: Apache-2.0
// After every failure: an error with reason and place, no new file under the final name, the old one untouched.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "convert/convert_testing.hpp"
#include "convert/run/verify.hpp"
#include "quantized/layout/open_input.hpp"

namespace tensorcast {
namespace {

namespace fs = std::filesystem;
using namespace file_conversion::testing;

class ConvertFailures : public ::testing::Test {
 protected:
  // Runs a conversion that must fail, and checks that no file is left.
  Error failure(const ConvertRequest& request) {
    const std::string before = file_content(request.output);
    const std::size_t entries = entries_beside(request.output);
    const Result<ConvertOutcome> outcome = convert_file(request);
    EXPECT_FALSE(outcome.ok());
    EXPECT_EQ(file_content(request.output), before);
    EXPECT_EQ(entries_beside(request.output), entries);
    return outcome.ok() ? Error{} : outcome.error();
  }

  static std::size_t entries_beside(const std::string& path) {
    std::error_code ignored;
    const fs::directory_iterator folder(fs::path(path).parent_path(), ignored);
    return static_cast<std::size_t>(std::distance(folder, fs::directory_iterator()));
  }

  std::string put_model(std::size_t elements = 4) {
    return write_safetensors(folder_, "in.safetensors", {floats("a", many_values(elements))});
  }

  TempFolder folder_;
  std::string out_ = folder_.put("out.safetensors", "old");
};

ConvertRequest overwriting(ConvertRequest request) {
  request.overwrite = true;
  return request;
}

// Runs in its own process. The preset tsan leaves these tests out: its run time cannot fork from a program with
// threads.
class ConvertFailuresForked : public ConvertFailures {};

TEST_F(ConvertFailures, ARuleThatMatchesNothing) {
  ConvertRequest convert = overwriting(request(put_model(), out_, DType::float16));
  convert.rules = {{"a", DType::float16}, {"b", DType::bfloat16}};
  const Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.message, "rule 2 (\"b\") matches no tensor");
}

TEST_F(ConvertFailures, PatternsThatAreNone) {
  ConvertRequest convert = overwriting(request(put_model(), out_, DType::float16));
  for (const std::string& pattern :
       {std::string("("), std::string("[z-a]"), std::string(1001, 'a'), std::string("(a)\\1")}) {
    convert.include = {pattern};
    EXPECT_EQ(failure(convert).code, ErrorCode::invalid_argument) << pattern;
  }
}

TEST_F(ConvertFailures, PatternsAndNamesMadeToHang) {
  ConvertRequest convert = request("", folder_.file("new.safetensors"), DType::float16);
  convert.exclude = {"^(a*)*b$", "(x+x+)+y"};
  for (const std::size_t length : {900, 1'000'000}) {
    convert.input = write_safetensors(folder_, "in.safetensors",
                                      {floats(std::string(length, 'a'), {1}), floats("aab", {1}), floats("xxy", {1})});
    EXPECT_TRUE(convert_file(convert).ok());
    convert.overwrite = true;
  }
}

TEST_F(ConvertFailures, TypesThatTheFormatCannotHold) {
  const Error error = failure(overwriting(request(put_model(), out_, DType::int4)));
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.message, "safetensors cannot hold int4");
  EXPECT_EQ(error.tensor, "a");
  for (const std::string_view format : file_formats_for(DType::int4)) {
    EXPECT_NE(error.hint.find(format), std::string::npos) << error.hint;
  }
}

TEST_F(ConvertFailures, HalfBytesInSafetensors) {
  ConvertRequest convert = overwriting(request(put_model(5), out_, DType::float4_e2m1fn));
  convert.allow_odd = true;
  const Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.tensor, "a");
}

TEST_F(ConvertFailures, ManyTensorsForAFormatOfOne) {
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("a", {1}), floats("b", {1})});
  const Error error = failure(request(in, folder_.file("out.raw"), DType::float16));
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.message, "raw holds exactly one array, and the input has 2");
}

TEST_F(ConvertFailures, ForeignTypesCannotBeConverted) {
  const std::string in =
      (fs::path(TENSORCAST_SOURCE_DIR) / "src/formats/safetensors/testdata/valid/every-dtype.safetensors").string();
  ConvertRequest convert = overwriting(request(in, out_, DType::undefined));
  convert.rules = {{"C64", DType::float32}};
  const Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.message, "C64 cannot be converted, only copied");
}

TEST_F(ConvertFailures, OptionsAreCheckedBeforeAnythingIsWritten) {
  ConvertRequest convert = overwriting(request(put_model(), out_, DType::float8_e4m3fn));
  convert.options.opset = 13;
  EXPECT_EQ(failure(convert).code, ErrorCode::unsupported);
  convert.options.opset = 99;
  EXPECT_EQ(failure(convert).code, ErrorCode::invalid_argument);
}

TEST_F(ConvertFailures, AnElementThatDoesNotFitIsNamedByItsPlaceInTheTensor) {
  std::vector<float> values(2'000'000, 1.0f);
  values[1'777'777] = 300.0f;
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("fine", {1}), floats("a", values)});
  for (const int threads : {1, 2}) {
    ConvertRequest convert = overwriting(request(in, out_, DType::undefined));
    convert.rules = {{"a", DType::uint8}};
    convert.options.out_of_range = OutOfRange::error;
    convert.execution.threads = threads;
    const Error error = failure(convert);
    EXPECT_EQ(error.code, ErrorCode::out_of_range);
    EXPECT_EQ(error.element, 1'777'777u);
    EXPECT_EQ(error.tensor, "a");
    EXPECT_EQ(error.file, in);
  }
}

TEST_F(ConvertFailures, MissingInputAndUnknownFormats) {
  const Error missing = failure(overwriting(request(folder_.file("missing.npy"), out_, DType::float16)));
  EXPECT_EQ(missing.code, ErrorCode::io);
  EXPECT_EQ(missing.message, "cannot open: No such file or directory");
  EXPECT_EQ(failure(request(put_model(), folder_.file("out.docx"), DType::float16)).code, ErrorCode::unsupported);
  EXPECT_EQ(failure(overwriting(request(folder_.put("in.docx", "hello"), out_, DType::float16))).code,
            ErrorCode::unsupported);
  ConvertRequest named = overwriting(request(put_model(), out_, DType::float16));
  named.output_format = "docx";
  EXPECT_EQ(failure(named).code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure(request(put_model(), folder_.file("no/folder/out.safetensors"), DType::float16)).code,
            ErrorCode::io);
}

TEST_F(ConvertFailuresForked, UnwritableFolder) {
  const fs::path locked = folder_.file("locked");
  fs::create_directory(locked);
  ASSERT_EQ(::chmod(locked.c_str(), 0500), 0);
  const std::string in = put_model();
  // Root may write anywhere, so the test runs as another user.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0) {
      (void)::chmod(fs::path(in).parent_path().c_str(), 0755);
      if (::chown(locked.c_str(), 65534, 65534) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
    }
    const Result<ConvertOutcome> outcome = convert_file(request(in, locked / "out.safetensors", DType::float16));
    const bool refused = !outcome.ok() && outcome.error().message == "cannot create: Permission denied";
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot become somebody else";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(locked));
}

TEST_F(ConvertFailures, CancellingLeavesNothing) {
  for (const bool while_verifying : {false, true}) {
    ConvertRequest convert = overwriting(request(put_model(1'000'000), out_, DType::float16));
    convert.verify = true;
    convert.on_progress = [&](const Progress& progress) {
      return while_verifying && progress.bytes_done <= progress.bytes_total / 2;
    };
    const Result<ConvertOutcome> outcome = convert_file(convert);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::cancelled);
    EXPECT_EQ(outcome.error().file, out_);
    EXPECT_EQ(file_content(out_), "old");
    EXPECT_EQ(entries_beside(out_), 2u);
  }
}

TEST_F(ConvertFailures, AnInputThatIsCutOffMeanwhile) {
  ConvertRequest convert = overwriting(request(put_model(3'000'000), out_, DType::float16));
  convert.on_progress = [&](const Progress&) { return ::truncate(convert.input.c_str(), 5000) == 0; };
  const Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::parse);
  EXPECT_EQ(error.message, "the file ends before its data does");
  EXPECT_EQ(error.file, convert.input);
}

TEST_F(ConvertFailures, AFullDiskIsKnownBeforeTheFirstByte) {
  const std::string disk = folder_.file("disk");
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs the right to mount a tmpfs";
  ConvertRequest convert = request(put_model(1'000'000), disk + "/out.safetensors", DType::float16);
  bool started = false;
  convert.on_progress = [&](const Progress& progress) {
    started = started || progress.bytes_done > 0;
    return true;
  };
  const Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::io);
  EXPECT_EQ(error.message, "cannot write: No space left on device");
  EXPECT_EQ(error.file, convert.output);
  EXPECT_FALSE(started);
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(ConvertFailuresForked, AWriterThatFailsOnTheWayEndsTheConversion) {
  ConvertRequest convert = overwriting(request(put_model(3'000'000), out_, DType::float16));
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    convert.on_progress = [](const Progress&) {
      const rlimit limit{.rlim_cur = 100, .rlim_max = 100};  // only now, so that reserving succeeds
      return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    };
    const Result<ConvertOutcome> outcome = convert_file(convert);
    ::_exit(!outcome.ok() && outcome.error().message == "cannot write: File too large" &&
                    outcome.error().file == convert.output
                ? 0
                : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(file_content(out_), "old");
  EXPECT_EQ(entries_beside(out_), 2u);
}

TEST_F(ConvertFailuresForked, KilledInTheMiddle) {
  const ConvertRequest whole = overwriting(request(put_model(2'000'000), out_, DType::bfloat16));
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ConvertRequest convert = whole;
    convert.on_progress = [&](const Progress&) {
      if (::write(ready[1], "!", 1) == 1) ::pause();
      return true;
    };
    (void)convert_file(convert);
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(file_content(out_), "old");

  EXPECT_TRUE(convert_file(whole).ok()) << "the next run works";
  EXPECT_EQ(read_safetensors(out_).at(0).info.dtype, DType::bfloat16);
  EXPECT_EQ(entries_beside(out_), 2u) << "something is left";
}

TEST_F(ConvertFailures, VerificationFindsWhatDiffers) {
  const std::string in =
      write_safetensors(folder_, "in.safetensors",
                        {floats("converted", many_values(100'000)), make_tensor("copied", DType::uint8, {4}, "abcd")});
  const ConvertRequest convert = overwriting(request(in, out_, DType::float16));
  ASSERT_TRUE(convert_file(convert).ok());

  const auto verdict = [&] {
    const Result<file_conversion::OpenedInput> input = file_conversion::open_input(in, "", {});
    const Result<file_conversion::OpenedInput> output = file_conversion::open_input(out_, "", {});
    if (!input || !output) return std::string("cannot be opened");
    auto plan = file_conversion::make_plan(convert, *input, *output->format);
    if (!plan) return plan.error().describe();
    file_conversion::ProgressMeter progress(convert.on_progress, 0);
    const Result<bool> same =
        file_conversion::verify(convert, plan->in_layout(), *input->reader, *output->reader, progress);
    if (same) return std::string(*same ? "same" : "cancelled");
    return same.error().tensor + " " + std::to_string(same.error().element.value_or(0)) + " " + same.error().message;
  };
  EXPECT_EQ(verdict(), "same");
  const std::string good = file_content(out_);
  std::string bad = good;
  const std::size_t data = good.size() - 200'004;
  bad[data + 2 * 77'777] = static_cast<char>(bad[data + 2 * 77'777] ^ 1);
  out_ = folder_.put("out.safetensors", bad);
  EXPECT_EQ(verdict().substr(0, 36), "converted 77777 the output has code ");
  bad = good;
  bad.back() = 'x';
  out_ = folder_.put("out.safetensors", bad);
  EXPECT_EQ(verdict(), "copied 0 the copied bytes differ");
}

TEST_F(ConvertFailuresForked, MemoryIsBoundedWhateverTheSize) {
  constexpr std::int64_t elements = std::int64_t{1} << 27;
  const std::string in = folder_.put("in.raw", "");
  ASSERT_EQ(::truncate(in.c_str(), elements * 4), 0);  // a hole, half a gibibyte long
  const pid_t child = ::fork();
  if (child == 0) {
    rusage before{};
    rusage after{};
    ::getrusage(RUSAGE_SELF, &before);
    ConvertRequest convert = request(in, folder_.file("out.raw"), DType::int2);
    convert.raw = RawLayout{.dtype = DType::float32, .shape = {elements}};
    const bool done = convert_file(convert).ok();
    ::getrusage(RUSAGE_SELF, &after);
    ::_exit(done && after.ru_maxrss - before.ru_maxrss < 64 * 1024 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tensorcast
