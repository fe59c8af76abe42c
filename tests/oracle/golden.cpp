// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace oracle {

std::uint64_t parse_element(Type type, const std::string& word) {
  if (word.rfind("0x", 0) == 0) return std::stoull(word, nullptr, 16);
  if (type == f64) return std::bit_cast<std::uint64_t>(std::strtod(word.c_str(), nullptr));
  if (type == f32) return std::bit_cast<std::uint32_t>(std::strtof(word.c_str(), nullptr));
  if (word.front() == '-') return static_cast<std::uint64_t>(std::stoll(word)) & code_mask(type);
  return std::stoull(word) & code_mask(type);
}

void set_option(tc_cast_options& options, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    throw std::invalid_argument(std::string(assignment) + " is not of the form option=value");
  const std::string_view name = assignment.substr(0, equals);
  const std::string value(assignment.substr(equals + 1));
  if (name == "scale") {
    options.scale = std::stod(value);
    return;
  }
  static constexpr std::pair<std::string_view, int32_t tc_cast_options::*> fields[] = {
      {"opset", &tc_cast_options::opset},           {"saturate", &tc_cast_options::saturate},
      {"round_mode", &tc_cast_options::round_mode}, {"out_of_range", &tc_cast_options::out_of_range},
      {"rounding", &tc_cast_options::rounding},     {"invalid", &tc_cast_options::invalid},
      {"fnuz_inf", &tc_cast_options::fnuz_inf},     {"float_string", &tc_cast_options::float_string},
      {"threads", &tc_cast_options::threads},
  };
  for (const auto& [known, field] : fields) {
    if (name != known) continue;
    options.*field = std::stoi(value);
    return;
  }
  throw std::invalid_argument("no option is called " + std::string(name));
}

std::vector<Corner> read_corners(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Corner> corners;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream fields(line);
    std::string from, element, to, options, result;
    std::getline(fields, from, '\t');
    std::getline(fields, element, '\t');
    std::getline(fields, to, '\t');
    std::getline(fields, options, '\t');
    std::getline(fields, result);
    Corner corner{.line = number, .from = type_of(from), .to = type_of(to), .options = default_options(), .result = {}};
    corner.code = parse_element(corner.from, element);
    if (result != "error") corner.result = parse_element(corner.to, result);
    std::istringstream assignments(options == "-" ? "" : options);
    for (std::string assignment; assignments >> assignment;) set_option(corner.options, assignment);
    corners.push_back(corner);
  }
  return corners;
}

}  // namespace oracle
