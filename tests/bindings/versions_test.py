# SPDX-License-Identifier: Apache-2.0
"""The packages of bindings/ have the library's version."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_packages_have_the_library_s_version():
    numbers = re.findall(r"^#define TENSORCAST_VERSION_[A-Z]* (\d+)", (ROOT / "include/tensorcast/version.hpp").read_text(), re.M)
    version = ".".join(numbers[:3])
    rust = (ROOT / "bindings/rust/Cargo.toml").read_text()
    assert f'version = "{version}"' in rust
    assert f'version = "{version}"' in (ROOT / "bindings/rust/tensorcast/Cargo.toml").read_text()
    assert json.loads((ROOT / "bindings/npm/package.json").read_text())["version"] == version
