// SPDX-License-Identifier: Apache-2.0
// Compares an output with a statement, and with what the statement's conversion makes of the input.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "cast/conversion.hpp"
#include "cast/parallel.hpp"
#include "checkpoint/compare/differences.hpp"
#include "checkpoint/compare/statement.hpp"
#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/run/attesting.hpp"
#include "checkpoint/run/finish.hpp"
#include "checkpoint/run/run_shard.hpp"
#include "checkpoint/run/run_shards.hpp"
#include "checkpoint/run/to_file.hpp"
#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/folder.hpp"
#include "convert/plan/conversion_record.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/input_file.hpp"
#include "io/sha256.hpp"
#include "quantized/layout/open_input.hpp"
#include "tensorcast/attestation.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using namespace checkpoint;

using Digests = std::map<std::string, std::string>;  // of files, by their names

Digests digests_of(const std::vector<DigestedFile>& files) {
  Digests digests;
  for (const DigestedFile& file : files) digests.emplace(file.name, file.sha256);
  return digests;
}

// Lets the metadata of a plan name the program that a statement is of.
Result<void> name_program(CheckpointPlan& plan, const std::string& program) {
  if (program == version()) return {};
  const std::string ours = fmt::format("{{\"version\":\"{}\"", version());
  for (PlannedShard& shard : plan.shards) {
    for (auto& [key, value] : shard.metadata) {
      if (key != file_conversion::conversion_key || !value.starts_with(ours)) continue;
      value.replace(0, ours.size(), fmt::format("{{\"version\":\"{}\"", program));
    }
    const std::vector<formats::TensorInfo> targets = TRY(lay_out(plan.table, shard));
    shard.bytes = TRY(formats::safetensors::format_header(targets, shard.metadata)).size() + shard.tensor_bytes;
  }
  return {};
}

class AttestationCheck {
 public:
  explicit AttestationCheck(const AttestationRequest& request) : request_(request) {}

  Result<AttestationOutcome> run() {
    statement_ = TRY(
        parse_statement(TRY(read_text(TRY(open_at(request_.attestation)), max_statement_bytes)), request_.attestation));
    output_ = TRY(attested_files(request_.checkpoint));
    // A single file may have another name by now.
    if (!is_checkpoint(request_.checkpoint) && statement_.outputs.size() == 1) {
      statement_.outputs[0].name = output_.names[0];
    }
    outputs_ = digests_of(statement_.outputs);
    TRY(check_names(output_, outputs_, "the output"));
    if (request_.against.empty()) {
      for (const auto& [name, digest] : outputs_) add_hash(output_.folder, name, digest, outcome_.files);
      TRY(work());
    } else {
      TRY(derive());
      outcome_.rederived = true;
    }
    outcome_.bytes_read = bytes_done_;
    return outcome_;
  }

 private:
  // Checks that a folder has the files of the statement, and no others but hidden ones, such as .gitattributes.
  Result<void> check_names(const AttestedFolder& found, const Digests& stated, const char* noun) const {
    const std::set<std::string> names(found.names.begin(), found.names.end());
    for (const std::string& name : names) {
      if (stated.contains(name) || last_component(name).starts_with('.')) continue;
      return in_file(found.folder + "/" + name,
                     internal_error(fmt::format("the statement does not name this file of {}", noun)));
    }
    for (const auto& [name, digest] : stated) {
      if (names.contains(name)) continue;
      return in_file(found.folder,
                     internal_error(fmt::format("the statement names \"{}\" of {}, which is not there", name, noun)));
    }
    return {};
  }

  Result<void> derive() {
    const AttestedFolder input = TRY(attested_files(request_.against, statement_.request.filter.skip_files));
    if (!is_checkpoint(request_.against) && statement_.inputs.size() == 1) statement_.inputs[0].name = input.names[0];
    inputs_ = digests_of(statement_.inputs);
    TRY(check_names(input, inputs_, "the input"));
    ConvertRequest request = statement_.request;
    request.input = request_.against;
    request.output = request_.checkpoint;
    request.execution = request_.execution;
    TRY(take_importance(request));
    for (const auto& [name, digest] : inputs_) add_hash(input.folder, name, digest, outcome_.inputs);
    if (!is_checkpoint(request_.checkpoint)) {
      tasks_.push_back([this, request] { return derive_single(request); });
      return work();
    }
    request.output_format.clear();
    plan_ = TRY(make_checkpoint_plan(request));
    TRY(name_program(plan_, statement_.version));
    TRY(add_derivations());
    return work();
  }

  Result<void> take_importance(ConvertRequest& request) const {
    if (!statement_.importance) return {};
    if (request_.importance.empty()) {
      return in_file(request_.attestation,
                     invalid("the weights were quantized with a file of importance", "pass `--importance FILE`"));
    }
    const DigestedFile file = TRY(digest_of(request_.importance));
    if (file.sha256 != statement_.importance->sha256) {
      return in_file(request_.importance, internal_error("the file's SHA-256 is not that of the statement"));
    }
    request.importance = request_.importance;
    return {};
  }

  void add_task(std::uint64_t bytes, std::function<Result<void>()> task) {
    bytes_total_ += bytes;
    tasks_.push_back(std::move(task));
  }

  // Hashes a file.
  void add_hash(const std::string& folder, const std::string& name, const std::string& digest, std::size_t& count) {
    add_task(file_bytes(folder + "/" + name).value_or(0), [this, folder, name, digest, &count]() -> Result<void> {
      const StoredFile file = TRY(open_source(folder, name));
      const std::string found = TRY(sha256_of_file(file, [&](std::uint64_t read) { return advance(read, name); }));
      return take_digest(file, found, digest, count);
    });
  }

  Result<void> take_digest(const StoredFile& file, const std::string& found, const std::string& digest,
                           std::size_t& count) {
    if (found != digest) {
      return in_file(file.path(), internal_error("the file's SHA-256 is not that of the statement"));
    }
    const std::scoped_lock lock(mutex_);
    ++count;
    return {};
  }

  // Adds a task for each file of the output. Errors: internal: the conversion makes other files.
  Result<void> add_derivations() {
    AttestedFolder made{.folder = output_.folder, .names = {}};
    const int at_once = static_cast<int>(shards_at_once(request_.execution, plan_.shards.size() + inputs_.size()));
    execution_ = request_.execution;
    execution_.threads = std::max(1, thread_count(request_.execution) / at_once);
    std::vector<std::function<Result<void>()>> hashes = std::exchange(tasks_, {});
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) {
      made.names.push_back(plan_.shards[i].name);
      add_task(plan_.shards[i].bytes, [this, i] { return derive_shard(i); });
      // Beside the hash of an input, so that its bytes are still in memory.
      if (i < hashes.size()) tasks_.push_back(std::move(hashes[i]));
    }
    for (std::size_t i = plan_.shards.size(); i < hashes.size(); ++i) tasks_.push_back(std::move(hashes[i]));
    for (const MadeText& file : made_texts(plan_)) {
      made.names.push_back(file.name);
      add_task(0, [this, file]() -> Result<void> {
        unsigned mode = 0;
        return derive_text(file.name, TRY(file.make(mode)));
      });
    }
    for (const ListedFile& file : plan_.copies) {
      made.names.push_back(file.name);
      const auto source = inputs_.find(file.name);
      const auto copy = outputs_.find(file.name);
      if (source == inputs_.end() || copy == outputs_.end()) continue;  // check_names() decides
      add_hash(output_.folder, file.name, copy->second, outcome_.files);
      if (source->second == copy->second) continue;
      differences_.push_back(in_file(output_.folder + "/" + file.name,
                                     internal_error("the conversion copies this file, and it is not the input's")));
    }
    return check_names(made, outputs_, "the conversion");
  }

  Result<void> derive_shard(std::size_t index) {
    const PlannedShard& shard = plan_.shards[index];
    const StoredFile written = TRY(open_source(output_.folder, shard.name));
    std::uint64_t before = 0;
    const std::uint64_t work = std::max<std::uint64_t>(work_bytes(plan_, shard), 1);
    const auto progress = [&](const Progress& now) {
      const auto done = static_cast<std::uint64_t>(static_cast<double>(now.bytes_done) / static_cast<double>(work) *
                                                   static_cast<double>(shard.bytes));
      const std::uint64_t step = done - std::min(done, before);
      before = std::max(done, before);
      return advance(step, shard.name);
    };
    const std::string digest = TRY(compare_shard(plan_, index, written, execution_, progress));
    return take_digest(written, digest, outputs_.at(shard.name), outcome_.files);
  }

  Result<void> derive_text(const std::string& name, const std::string& text) {
    const StoredFile written = TRY(open_source(output_.folder, name));
    std::string there(std::min<std::uint64_t>(written.size(), max_statement_bytes), '\0');
    TRY(written.read(0, std::as_writable_bytes(std::span(there))));
    if (there != text) {
      const auto at = std::ranges::mismatch(there, text).in1 - there.begin();
      const auto line = 1 + std::count(there.begin(), there.begin() + at, '\n');
      return in_file(written.path(),
                     internal_error(fmt::format("line {} is not the one that the conversion makes", line)));
    }
    return take_digest(written, io::sha256_of(text), outputs_.at(name), outcome_.files);
  }

  Result<void> derive_single(const ConvertRequest& request) {
    const file_conversion::Derivation derivation{
        .version = statement_.version == version() ? std::string() : statement_.version,
        .look = [this, &request](const std::string& path) { return compare_single(path, request.output_format); }};
    ConvertRequest own = request;
    own.on_progress = [this](const Progress& now) { return advance(0, std::string(now.tensor)); };
    const bool folder = is_checkpoint(request.input);
    const Result<ConvertOutcome> made =
        folder ? convert_to_file(own, &derivation) : file_conversion::derive_file(own, derivation);
    if (!made) return made.error();
    return {};
  }

  Result<void> compare_single(const std::string& made, const std::string& format) {
    const StoredFile written = TRY(open_source(output_.folder, output_.names[0]));
    const io::InputFile derived = TRY(io::InputFile::open(made));
    constexpr std::uint64_t block = std::uint64_t{4} << 20;
    io::Sha256 hash;
    std::vector<std::byte> left, right;
    bool same = written.size() == derived.size();
    for (std::uint64_t at = 0; same && at < derived.size(); at += block) {
      left.resize(std::min(block, derived.size() - at));
      right.resize(left.size());
      TRY(written.read(at, left));
      TRY(derived.read(at, right));
      hash.update(left);
      same = std::memcmp(left.data(), right.data(), left.size()) == 0;
      if (!advance(left.size(), output_.names[0])) return cancelled("cancelled");
    }
    if (same) return take_digest(written, hash.digest(), outputs_.begin()->second, outcome_.files);
    return in_file(written.path(), difference_of(made, format));
  }

  // Looks for the tensor that differs.
  Error difference_of(const std::string& made, const std::string& format) const {
    Error other = internal_error("the file's metadata are not those that the conversion makes");
    Result<file_conversion::OpenedInput> a = file_conversion::open_input(request_.checkpoint, format, {});
    Result<file_conversion::OpenedInput> b = file_conversion::open_input(made, format, {});
    if (!a || !b) return other;
    const std::vector<formats::TensorInfo>& tensors = b->reader->tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const formats::TensorInfo& tensor = tensors[i];
      other.tensor = tensor.name;
      if (i >= a->reader->tensors().size() || a->reader->tensors()[i].name != tensor.name ||
          a->reader->tensors()[i].dtype != tensor.dtype || a->reader->tensors()[i].shape != tensor.shape ||
          a->reader->tensors()[i].bytes != tensor.bytes) {
        other.message = "the conversion makes another tensor";
        return other;
      }
      constexpr std::uint64_t block = std::uint64_t{1} << 20;
      std::vector<std::byte> left, right;
      for (std::uint64_t at = 0; at < tensor.bytes && tensor.dtype != DType::string; at += block) {
        left.resize(std::min(block, tensor.bytes - at));
        right.resize(left.size());
        if (!a->reader->read(i, at, left) || !b->reader->read(i, at, right)) return other;
        if (left == right) continue;
        const auto first = std::ranges::mismatch(left, right).in1 - left.begin();
        other.message = fmt::format("its bytes from {} on are not those that the conversion makes",
                                    at + static_cast<std::uint64_t>(first));
        return other;
      }
    }
    other.tensor.clear();
    return other;
  }

  // Notes bytes that were read. Returns false to cancel.
  bool advance(std::uint64_t bytes, const std::string& file) {
    const std::scoped_lock lock(mutex_);
    bytes_done_ += bytes;
    if (is_stopping_) return false;
    if (!request_.on_progress) return true;
    const std::uint64_t total = std::max(bytes_total_, bytes_done_);
    if (!request_.on_progress({.bytes_done = bytes_done_, .bytes_total = total, .file = file})) is_stopping_ = true;
    return !is_stopping_;
  }

  // Runs all tasks. Differences are collected; another error ends the work.
  Result<void> work() {
    Result<void> failed;
    const auto at_once = static_cast<int>(shards_at_once(request_.execution, tasks_.size()));
    run_tasks(tasks_.size(), {.threads = at_once}, [&](std::size_t i) {
      {
        const std::scoped_lock lock(mutex_);
        if (is_stopping_) return;
      }
      Result<void> done = guarded([&] { return tasks_[i](); });
      if (done) return;
      const std::scoped_lock lock(mutex_);
      if (done.error().code == ErrorCode::internal) {
        differences_.push_back(std::move(done).error());
        return;
      }
      is_stopping_ = true;
      if (failed) failed = std::move(done);
    });
    TRY(failed);
    if (is_stopping_) return cancelled("cancelled");
    std::ranges::sort(differences_, {}, &Error::file);
    if (differences_.empty()) return {};
    if (statement_.version != version()) {
      differences_[0].hint =
          fmt::format("the statement is of tensorcast {}, and this is {}", statement_.version, version());
    }
    return first_difference(std::move(differences_), output_.folder);
  }

  const AttestationRequest& request_;
  Statement statement_;
  AttestedFolder output_;
  Digests outputs_, inputs_;
  CheckpointPlan plan_;
  Execution execution_;  // of one shard
  std::vector<std::function<Result<void>()>> tasks_;
  AttestationOutcome outcome_;
  std::uint64_t bytes_total_ = 0;

  std::mutex mutex_;  // of all below, and of the outcome while tasks run
  std::uint64_t bytes_done_ = 0;
  bool is_stopping_ = false;
  std::vector<Error> differences_;
};

}  // namespace

Result<AttestationOutcome> verify_attestation(const AttestationRequest& request) {
  return guarded(request.checkpoint, [&]() -> Result<AttestationOutcome> {
    TRY(check_execution(request.execution));
    return AttestationCheck(request).run();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
