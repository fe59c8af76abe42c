// SPDX-License-Identifier: Apache-2.0
// A program with the pass of tensorcast/openvino.hpp: openvino_pass EXTENSION IN.xml OUT.xml [OPTION=VALUE ...]
#include <exception>
#include <iostream>
#include <openvino/openvino.hpp>
#include <openvino/pass/manager.hpp>
#include <string>
#include <tensorcast/openvino.hpp>

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "openvino_pass EXTENSION IN.xml OUT.xml [OPTION=VALUE ...]\n";
    return 2;
  }
  try {
    ov::AnyMap options;
    for (int i = 4; i < argc; ++i) {
      const std::string text = argv[i];
      const std::size_t equals = text.find('=');
      const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
      const bool is_bool = value == "True" || value == "False";
      options[text.substr(0, equals)] = is_bool ? ov::Any(value == "True") : ov::Any(value);
    }
    ov::Core core;
    const std::shared_ptr<ov::Model> model = core.read_model(argv[2]);
    ov::pass::Manager manager;
    manager.register_pass<tensorcast::openvino::UseTensorcast>(argv[1], options);
    manager.run_passes(model);
    ov::save_model(model, argv[3], false);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
