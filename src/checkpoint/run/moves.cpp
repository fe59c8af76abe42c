// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/moves.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/source/index_file.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Kind = io::Found::Kind;

constexpr const char* format_name = "tensorcast moves";
constexpr int format_version = 1;

std::string moves_text(const Moves& moves, const std::string& identity) {
  OrderedJson document = {{"format", format_name},
                          {"version", format_version},
                          {"identity", identity},
                          {"moves", OrderedJson::array()},
                          {"old", OrderedJson::array()}};
  for (const Move& move : moves.moves) {
    document["moves"].push_back(
        {{"from", move.from}, {"file", move.name}, {"bytes", move.bytes}, {"sha256", move.sha256}});
  }
  for (const io::WrittenFile& file : moves.old) document["old"].push_back(io::written_file_json(file));
  return document.dump(1) + "\n";
}

Result<Moves> parse_moves(const std::string& text, const std::string& identity, const std::string& path) {
  const Error damaged = in_file(
      path, parse_error("the list of moves is damaged", "all new files are complete in the folder .tcast beside it"));
  try {
    const OrderedJson document = OrderedJson::parse(text);
    if (document.at("format") != format_name || document.at("version") != format_version) return damaged;
    if (document.at("identity") != identity) return damaged;
    Moves moves;
    for (const OrderedJson& entry : document.at("moves")) {
      Move& move = moves.moves.emplace_back(Move{.from = entry.at("from").get<std::string>(),
                                                 .name = entry.at("file").get<std::string>(),
                                                 .bytes = entry.at("bytes").get<std::uint64_t>(),
                                                 .sha256 = entry.at("sha256").get<std::string>()});
      const bool inside = move.from.starts_with(".tcast/") && check_file_name(move.from, path).ok() &&
                          check_file_name(move.name, path).ok();
      if (!inside || !io::is_sha256(move.sha256)) return damaged;
    }
    for (const OrderedJson& entry : document.at("old")) {
      const io::WrittenFile& file = moves.old.emplace_back(io::read_written_file(entry));
      if (!check_file_name(file.name, path).ok() || !io::is_sha256(file.sha256)) return damaged;
    }
    return moves;
  } catch (const OrderedJson::exception&) {
    return damaged;
  }
}

class Carrier {
 public:
  Carrier(Moves moves, WorkFolder& folder) : moves_(std::move(moves)), work_(folder), folder_(folder.files()) {}

  Result<void> run() {
    for (const Move& move : moves_.moves) from_.emplace(move.name, move.from);
    TRY(read_written());
    // First, so that the old files stay if a new one is damaged.
    std::vector<const Move*> left;
    for (const Move& move : moves_.moves) {
      if (TRY(is_staged(move))) left.push_back(&move);
      note_folders(move.name);
    }
    TRY(remove_old());
    for (const Move* move : left) {
      const std::string above = folder_of(move->name);
      const std::string inside = above.empty() ? "" : above.substr(0, above.size() - 1);
      TRY(folder_.create_folder(inside));
      TRY(folder_.move(move->from, move->name));
    }
    for (const std::string& folder : folders_) TRY(folder_.sync_folder(folder));
    TRY(write_record());
    return work_.finish_state();
  }

 private:
  // After a crash behind write_record() all files have their places, and need not be read again.
  Result<void> read_written() {
    Result<std::optional<io::WrittenFiles>> record = read_record(folder_);
    if (!record && record.error().code == ErrorCode::parse) return {};  // it is written anew
    if (!record) return std::move(record).error();
    if (!record->has_value() || (*record)->identity != work_.identity()) return {};
    for (io::WrittenFile& file : (*record)->files) written_.emplace(file.name, std::move(file));
    return {};
  }

  // Removes what a former run wrote, indexes first: an index must not outlive any of its shards, and no old shard may
  // stand beside a new one.
  Result<void> remove_old() {
    std::set<std::string> emptied;
    for (const bool indexes : {true, false}) {
      for (const io::WrittenFile& file : moves_.old) {
        if (!stem_of_index(last_component(file.name)).empty() != indexes) continue;
        if (from_.contains(file.name) && !is_weight_file(file.name)) continue;  // is replaced in one step
        if (!TRY(is_old(file))) continue;
        TRY(folder_.remove(file.name));
        if (const std::string inside = folder_of(file.name); !inside.empty()) {
          emptied.insert(inside.substr(0, inside.size() - 1));
        }
      }
      TRY(folder_.sync_folder(""));
    }
    for (const std::string& inside : emptied) TRY(folder_.sync_folder(inside));
    for (auto inside = emptied.rbegin(); inside != emptied.rend(); ++inside) TRY(folder_.remove_empty_folder(*inside));
    return {};
  }

  static bool is_weight_file(const std::string& name) {
    return name.ends_with(".safetensors") || !stem_of_index(last_component(name)).empty();
  }

  // Reports whether the place still has the old file: not another one, and not the new one.
  Result<bool> is_old(const io::WrittenFile& file) const {
    if (const auto from = from_.find(file.name); from != from_.end()) {
      if (!TRY(folder_.find(from->second)).has_value()) return false;
    }
    return folder_.is_as_written(file);
  }

  // Notes the folders that get new names: that of a file, and those above it.
  void note_folders(const std::string& name) {
    folders_.insert("");
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      folders_.insert(name.substr(0, slash));
    }
  }

  // Reports whether a file waits for its place. If not, it must have it already.
  Result<bool> is_staged(const Move& move) const {
    const std::optional<Folder::Entry> staged = TRY(folder_.find(move.from));
    if (!staged.has_value()) {
      TRY(check_moved(move));
      return false;
    }
    if (staged->kind != Kind::file || staged->bytes != move.bytes) return damaged(move.from);
    return true;
  }

  Result<void> check_moved(const Move& move) const {
    io::WrittenFile wanted{.name = move.name, .bytes = move.bytes, .version = {}, .sha256 = move.sha256};
    const auto written = written_.find(move.name);
    if (written != written_.end() && written->second.sha256 == move.sha256) wanted.version = written->second.version;
    return TRY(folder_.is_as_written(wanted)) ? Result<void>() : damaged(move.name);
  }

  [[nodiscard]] Error damaged(const std::string& name) const {
    return in_file(folder_.path_of(name), io_failure("the file was converted, and has disappeared or was changed since",
                                                     "to convert again, remove the output's .tcast and its new files"));
  }

  Result<void> write_record() {
    io::WrittenFiles written{.identity = work_.identity(), .files = {}};
    for (const Move& move : moves_.moves) {
      const std::optional<Folder::Entry> found = TRY(folder_.find(move.name));
      if (!found.has_value() || found->bytes != move.bytes) return damaged(move.name);
      written.files.push_back(
          {.name = move.name, .bytes = move.bytes, .version = found->version, .sha256 = move.sha256});
    }
    return folder_.write_text(record_name, io::written_files_text(written));
  }

  Moves moves_;
  WorkFolder& work_;
  const Folder& folder_;
  std::map<std::string, std::string> from_;  // by place
  std::set<std::string> folders_;
  std::map<std::string, io::WrittenFile> written_;
};

}  // namespace

Result<void> begin_moves(const Moves& moves, const WorkFolder& folder) {
  TRY(folder.check_identity());
  return folder.files().write_text(moving_name, moves_text(moves, folder.identity()));
}

Result<void> carry_out(WorkFolder& folder) {
  TRY(folder.check_identity());
  const std::string text = TRY(folder.files().read_text(moving_name, 4 * max_index_bytes));
  Moves moves = TRY(parse_moves(text, folder.identity(), folder.files().path_of(moving_name)));
  return Carrier(std::move(moves), folder).run();
}

}  // namespace tensorcast::checkpoint
