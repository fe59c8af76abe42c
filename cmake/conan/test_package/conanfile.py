# SPDX-License-Identifier: Apache-2.0
"""A project of CMake that links the package: that of tests/install, which touches every header."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    @property
    def _sources(self):
        return ["core"] if self.dependencies["tensorcast"].options.core_only else ["core", "files", "models"]

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["COMPONENT"] = "core" if len(self._sources) == 1 else ""
        toolchain.cache_variables["SOURCES"] = ";".join(self._sources)
        toolchain.user_presets_path = False  # none beside the sources
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join("..", "..", "..", "tests", "install", "cmake_consumer"))
        cmake.build()

    def test(self):
        if can_run(self):
            for program in self._sources:
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
