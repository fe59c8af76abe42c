// SPDX-License-Identifier: Apache-2.0
// Gives complete files their places by a written record of all moves, which any later run can carry out to its end.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/plan/work_folder.hpp"
#include "io/written_files.hpp"

namespace tensorcast::checkpoint {

struct Move {
  std::string from;  // in the state
  std::string name;  // its place
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Moves {
  std::vector<Move> moves;           // shards first, indexes last
  std::vector<io::WrittenFile> old;  // what a former run wrote: goes first
};

// Writes the record. From here on only carry_out() leads on. Errors: io.
[[nodiscard]] Result<void> begin_moves(const Moves& moves, const WorkFolder& folder);

// Carries out the record, from wherever a crash stopped: removes old files, indexes first, moves the new ones, writes
// the list of what was written, and removes the state. A file that is not in the state must have its place already,
// with its size and hash. Errors: io, parse.
[[nodiscard]] Result<void> carry_out(WorkFolder& folder);

}  // namespace tensorcast::checkpoint
