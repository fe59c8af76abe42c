#include "checkpoint/finish.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/config_file.hpp"
#include "checkpoint/file_name.hpp"
#include "checkpoint/json_text.hpp"
#include "checkpoint/remote_folder.hpp"
#include "convert/aligned_buffer.hpp"
#include "io/file_descriptor.hpp"
#include "io/sha256.hpp"
#include "io/system_error.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr const char* sums_name = "SHA256SUMS";
constexpr std::uint64_t max_config_bytes = std::uint64_t{64} << 20;

// One process finishes; others wait, and find it done.
class FinishLock {
 public:
  static Result<FinishLock> take(const WorkFolder& folder) {
    FinishLock lock;
    if (is_remote(folder.output())) return lock;  // every step below may run twice
    lock.fd_ = io::FileDescriptor(::open(folder.hidden().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock.fd_ && errno != ENOENT) return io::system_error("open", folder.hidden(), errno);
    // File systems without locks have to do without: every step below may run twice.
    if (lock.fd_) ::flock(lock.fd_.get(), LOCK_EX);
    return lock;
  }

 private:
  io::FileDescriptor fd_;
};

class Finishing {
 public:
  Finishing(const CheckpointPlan& plan, const std::vector<DoneShard>& done, const WorkFolder& folder)
      : plan_(plan), done_(done), folder_(folder) {}

  Result<void> run() {
    Result<FinishLock> lock = FinishLock::take(folder_);
    if (!lock) return std::move(lock).error();
    if (!is_folder(folder_.hidden())) return check_complete();
    if (!is_file(folder_.moving_path())) {
      if (Result<void> staged = stage_all(); !staged) return staged;
    }
    return move_all();
  }

 private:
  // Another process has finished meanwhile: its shards must be these.
  [[nodiscard]] Result<void> check_complete() const {
    const Result<std::string> sums = read_file_text(folder_.place(sums_name), max_config_bytes);
    if (!sums) return sums.error();
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) {
      if (sums->find(sums_line(done_[i].sha256, plan_.shards[i].name)) == std::string::npos) {
        return Error{.code = ErrorCode::io,
                     .message = "another process has finished another conversion in this folder",
                     .file = folder_.output()};
      }
    }
    return {};
  }

  Result<void> stage_all() {
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) add(plan_.shards[i].name, done_[i].sha256);
    for (const ListedFile& file : plan_.copies) {
      if (Result<void> copied = copy(file.name); !copied) return copied;
    }
    for (const PlannedConfig& config : plan_.configs) {
      if (Result<void> written = write_config(config); !written) return written;
    }
    for (const PlannedModel& model : plan_.models) {
      if (model.index.empty()) continue;
      if (Result<void> written = write_index(model); !written) return written;
    }
    std::map<std::string, std::string> sorted(sums_.begin(), sums_.end());
    std::string sums;
    for (const auto& [name, sha256] : sorted) sums += sums_line(sha256, name);
    if (Result<void> written = stage(sums_name, sums); !written) return written;
    // The order in which files get their places: what makes the folder loadable comes last.
    nlohmann::json order = nlohmann::json::array();
    for (const auto& [name, sha256] : sums_) {
      if (order.size() == plan_.shards.size()) order.push_back(sums_name);
      order.push_back(name);
    }
    if (order.size() == plan_.shards.size()) order.push_back(sums_name);
    if (Result<void> moved = write_file_text(folder_.moved_plan_path(), plan_text(plan_)); !moved) return moved;
    return write_file_text(folder_.moving_path(), order.dump() + "\n");
  }

  void add(const std::string& name, std::string sha256) { sums_.emplace_back(name, std::move(sha256)); }

  Result<void> stage(const std::string& name, const std::string& text) {
    return write_file_text(folder_.staged(name), text);
  }

  Result<void> copy(const std::string& name) {
    Result<std::unique_ptr<ByteSource>> source = open_source(plan_.source, name);
    if (!source) return std::move(source).error();
    Result<std::unique_ptr<ByteSink>> sink = create_sink(folder_.staged(name), (*source)->size());
    if (!sink) return std::move(sink).error();
    constexpr std::size_t block = std::size_t{1} << 20;
    const conversion::AlignedBuffer buffer(block);
    io::Sha256 hash;
    for (std::uint64_t offset = 0; offset < (*source)->size();) {
      const auto bytes = buffer.span().first(std::min<std::uint64_t>(block, (*source)->size() - offset));
      if (Result<void> got = (*source)->read(offset, bytes); !got) return got;
      if (Result<void> put = (*sink)->append(bytes); !put) return put;
      hash.update(bytes);
      offset += bytes.size();
    }
    add(name, hash.digest());
    return (*sink)->commit();
  }

  Result<std::string> read_source_text(const std::string& name, std::uint64_t max_bytes) const {
    const Result<std::unique_ptr<ByteSource>> source = open_source(plan_.source, name);
    if (!source) return source.error();
    return read_text(**source, max_bytes);
  }

  Result<void> write_config(const PlannedConfig& config) {
    const Result<std::string> text = read_source_text(config.name, max_config_bytes);
    if (!text) return text.error();
    const Result<std::string> rewritten = with_dtype(*text, config.dtype);
    if (!rewritten) {
      Error error = rewritten.error();
      error.file = plan_.source + "/" + config.name;
      return error;
    }
    add(config.name, io::sha256_of(*rewritten));
    return stage(config.name, *rewritten);
  }

  Result<void> write_index(const PlannedModel& model) {
    std::string old;
    if (!model.source_index.empty()) {
      Result<std::string> text = read_source_text(model.source_index, max_index_bytes);
      if (!text) return std::move(text).error();
      if (io::sha256_of(*text) != model.source_index_sha256) {
        return Error{.code = ErrorCode::io,
                     .message = "the index has changed since the conversion was planned",
                     .hint = "plan the conversion again; `overwrite` replaces the old plan",
                     .file = plan_.source + "/" + model.source_index};
      }
      old = std::move(text).value();
    }
    std::uint64_t total_size = 0;
    std::map<std::string, std::string> map;
    for (const std::size_t index : model.shards) {
      const PlannedShard& shard = plan_.shards[index];
      total_size += shard.tensor_bytes();
      if (!model.new_map) continue;
      for (const ShardTensor& tensor : shard.tensors) {
        map.emplace(tensor.planned.target.name, last_component(shard.name));
      }
    }
    const Result<std::string> text = rewritten_index(old, total_size, map);
    if (!text) return text.error();
    add(model.index, io::sha256_of(*text));
    return stage(model.index, *text);
  }

  // Gives every file its place. May run again at any point.
  Result<void> move_all() {
    const Result<std::string> text = read_file_text(folder_.moving_path(), max_index_bytes);
    if (!text) return text.error();
    std::vector<std::string> order;
    try {
      order = nlohmann::json::parse(*text).get<std::vector<std::string>>();
    } catch (const nlohmann::json::exception&) {
      return Error{.code = ErrorCode::parse, .message = "the list of files is damaged", .file = folder_.moving_path()};
    }
    if (Result<void> removed = remove_plan(order); !removed) return removed;
    if (plan_.overwrite) {
      if (Result<void> removed = remove_old(order); !removed) return removed;
    }
    std::set<std::string> folders;
    for (const std::string& name : order) {
      if (Result<void> named = check_file_name(name, folder_.moving_path()); !named) return named;
      if (!is_file(folder_.staged(name))) continue;
      if (folders.insert(folder_of(name)).second) {
        if (Result<void> created = create_folders(folder_.place(folder_of(name))); !created) return created;
      }
      if (Result<void> moved = rename_file(folder_.staged(name), folder_.place(name)); !moved) return moved;
    }
    for (const std::string& name : order) {
      if (is_file(folder_.place(name))) continue;
      return Error{.code = ErrorCode::io, .message = "the file has disappeared", .file = folder_.place(name)};
    }
    for (const std::string& folder : folders) {
      if (Result<void> synced = sync_folder(folder_.place(folder)); !synced) return synced;
    }
    // At once, so that a crash leaves no part of the state, which would look like a conversion to go on with.
    return folder_.finish_hidden();
  }

  // Removes the plan from the output's files; from here on it is in the hidden folder only.
  Result<void> remove_plan(const std::vector<std::string>& order) const {
    const bool belongs = std::ranges::find(order, "plan.json") != order.end();
    // A file of this name that belongs to the checkpoint replaces it.
    return belongs ? Result<void>() : remove_tree(folder_.plan_path());
  }

  // Removes weights and indexes of the checkpoint that is overwritten, so that none are mixed with the new ones.
  Result<void> remove_old(const std::vector<std::string>& order) const {
    const std::set<std::string> added(order.begin(), order.end());
    const Result<std::vector<ListedFile>> files = list_files(folder_.output(), "");
    if (!files) return files.error();
    for (const bool indexes : {true, false}) {
      for (const ListedFile& file : *files) {
        const bool index = !stem_of_index(last_component(file.name)).empty();
        if (index != indexes || (!index && !file.name.ends_with(".safetensors"))) continue;
        // A new file of this name is there already, or will replace it at once; an old index must not outlive any of
        // its shards.
        if (added.contains(file.name) && !(index && is_file(folder_.staged(file.name)))) continue;
        if (Result<void> removed = remove_tree(folder_.place(file.name)); !removed) return removed;
      }
    }
    return {};
  }

  const CheckpointPlan& plan_;
  const std::vector<DoneShard>& done_;
  const WorkFolder& folder_;
  std::vector<std::pair<std::string, std::string>> sums_;  // file, hash; shards first, indexes last
};

}  // namespace

std::string sums_line(const std::string& sha256, const std::string& name) {
  if (name.find_first_of("\\\n\r") == std::string::npos) return fmt::format("{}  {}\n", sha256, name);
  std::string escaped;
  for (const char c : name) {
    if (c == '\\')
      escaped += "\\\\";
    else if (c == '\n')
      escaped += "\\n";
    else if (c == '\r')
      escaped += "\\r";
    else
      escaped += c;
  }
  return fmt::format("\\{}  {}\n", sha256, escaped);
}

Result<void> finish(const CheckpointPlan& plan, const std::vector<DoneShard>& done, const WorkFolder& folder) {
  return Finishing(plan, done, folder).run();
}

}  // namespace tensorcast::checkpoint
