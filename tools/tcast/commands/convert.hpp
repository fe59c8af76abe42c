// SPDX-License-Identifier: Apache-2.0
// What the command line asks of tcast convert and tcast plan.
#pragma once

#include <string>
#include <vector>

#include "flags/options.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

struct ConvertArguments {
  tensorcast::ConvertRequest request;  // of one of the inputs
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;  // of inputs that are converted into a folder; else empty
  InputLayout layout;
  std::vector<std::string> rules;
  std::vector<std::string> rule_files;
  std::string report_path;
  std::string attestation;  // the file of a statement; empty: none
  bool plan_only = false;   // tcast plan
  bool strict_loss = false;
  bool allow_loss = false;
  bool json = false;
  bool quiet = false;
};

[[nodiscard]] inline bool is_url(const std::string& path) { return path.find("://") != std::string::npos; }

// Converts all inputs. Returns the exit status.
int convert_all(ConvertArguments& arguments);

}  // namespace tcast
