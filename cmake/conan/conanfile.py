# SPDX-License-Identifier: Apache-2.0
"""The Conan package of the libraries, from this checkout: conan create cmake/conan (scripts/checks/conan tries it).

Dependencies are the system's: Conan checks that Debian's packages are there (system_requirements). Consumers find the package
by the configuration of CMake that the project installs, so the targets are those of every other installation.
"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.system.package_manager import Apt


class Tensorcast(ConanFile):
    name = "tensorcast"
    description = "Converts tensors and checkpoints between every number format that machine learning uses"
    license = "Apache-2.0"
    topics = ("float8", "bfloat16", "quantization", "safetensors", "gguf", "onnx")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "core_only": [True, False], "with_tbb": [True, False]}
    default_options = {"shared": False, "core_only": False, "with_tbb": True}

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        numbers = load(self, os.path.join(self._root, "include", "tensorcast", "version.hpp"))
        self.version = ".".join(re.findall(r"#define TENSORCAST_VERSION_\w+ (\d+)", numbers))

    def export(self):
        copy(self, "bootstrap", os.path.join(self._root, "scripts"), self.export_folder)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "src/*", "cmake/*"):
            copy(self, pattern, self._root, self.export_sources_folder,
                 excludes=("*/testdata/*", "*/corpus/*", "*_test.cpp", "*_fuzz.cpp", "cmake/conan/*"))

    def system_requirements(self):
        """The libraries of the list that scripts/bootstrap --build-only installs."""
        exported = os.path.join(self.recipe_folder, "bootstrap")
        script = exported if os.path.exists(exported) else os.path.join(self._root, "scripts", "bootstrap")
        build = load(self, script).partition("build_packages=(")[2].partition("\n)")[0]
        wanted = [name for name in re.findall(r"^ +([\w-]+-dev)\b", build, re.MULTILINE) if name != "libcli11-dev"]
        if self.options.core_only:
            wanted = [name for name in wanted if name in ("libfmt-dev", "libtbb-dev")]
        if not self.options.with_tbb:
            wanted.remove("libtbb-dev")
        Apt(self).install(wanted)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TENSORCAST_CORE_ONLY"] = bool(self.options.core_only)
        toolchain.cache_variables["TENSORCAST_WITH_TBB"] = "ON" if self.options.with_tbb else "OFF"
        for part in ("TOOLS", "TESTS", "BENCHMARKS", "EXAMPLES", "INTEGRATIONS"):
            toolchain.cache_variables[f"TENSORCAST_BUILD_{part}"] = False
        toolchain.user_presets_path = False  # none beside the sources
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the project's own configuration is found instead
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "tensorcast")]
