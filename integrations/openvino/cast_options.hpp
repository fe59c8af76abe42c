// The attributes of an operation that are options of tc_cast(), by the names and values of the Python package.
#pragma once

#include <tensorcast/c_api.h>

#include <openvino/core/attribute_visitor.hpp>

#include <cstdint>
#include <string>

namespace tensorcast::openvino {

struct CastOptions {
  std::int64_t opset = 0;
  bool saturate = true;
  std::string round_mode = "up";
  std::string out_of_range = "auto";
  std::string int_rounding = "trunc";
  std::string invalid = "default";
  std::string fnuz_inf = "spec";
  std::int64_t threads = 0;
  double scale = 1.0;

  void visit(ov::AttributeVisitor& visitor);

  // Fails on a value that an attribute does not have.
  [[nodiscard]] tc_cast_options checked() const;
};

}  // namespace tensorcast::openvino
