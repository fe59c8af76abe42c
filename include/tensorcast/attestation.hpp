// SPDX-License-Identifier: Apache-2.0
// Component files. Statements about conversions: what was converted, how, and to which bytes, as in-toto statements
// (docs/attestation.md). Whoever has input and output derives every byte of the output again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Converts as convert() of checkpoint.hpp, and writes a statement to the file `statement`. In an output folder its name
// is attestation.intoto.json. Errors: as convert(); unsupported: a request whose input is raw or no file, a dry run.
// Cost: reads the input once more to hash it.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert_attested(const ConvertRequest& request,
                                                                     const std::string& statement);

struct AttestationRequest {
  std::string checkpoint = {};   // the output: a folder or a file
  std::string attestation = {};  // the statement about it
  std::string against = {};      // the input; empty: only hashes are compared
  std::string importance = {};   // the file of importance, if the statement names one and `against` is set
  Execution execution = {};
  std::function<bool(const Progress&)> on_progress = {};  // returns false to cancel, which is the error `cancelled`
};

struct AttestationOutcome {
  std::size_t files = 0;   // of the output, whose SHA-256 is that of the statement
  std::size_t inputs = 0;  // of the input, likewise
  std::uint64_t bytes_read = 0;
  bool rederived = false;  // every byte of the output was made again from the input
};

// Compares the files of an output with a statement. With `against`, also those of the input, and converts them again as
// the statement says: every byte must be the same. The output has no file that the statement lacks.
// Errors: io, parse (of the statement, too), internal (what differs: the file, tensor and block; more files that
// differ are named in the message), invalid_argument, cancelled. Memory: as convert().
[[nodiscard]] TENSORCAST_API Result<AttestationOutcome> verify_attestation(const AttestationRequest& request);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
