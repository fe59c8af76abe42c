# SPDX-License-Identifier: Apache-2.0
"""One list of versions: requirements and pages agree with tests/versions.txt, and all places name the same Pythons."""

import re
import runpy
import subprocess

import pytest
import yaml


def test_requirements_and_pages_have_the_versions_of_the_list(source_dir):
    result = subprocess.run([source_dir / "scripts/make/versions", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_another_version_is_found_and_written(source_dir):
    script = runpy.run_path(str(source_dir / "scripts/make/versions"), run_name="versions")
    common, single = script["versions"]()
    assert len(common) > 40 and single
    assert script["written"]("x.txt", "torch==1.0  # why\nnumpy>=2.0\n") == f"torch=={common['torch']}  # why\nnumpy>=2.0\n"
    (path, name), version = next(iter(single.items()))
    assert script["written"](path, f"{name}==0") == f"{name}=={version}"
    with pytest.raises(SystemExit, match="does not name"):
        script["written"]("x.txt", "unheard-of==1.0")


def test_the_list_has_no_version_that_nothing_pins(source_dir):
    script = runpy.run_path(str(source_dir / "scripts/make/versions"), run_name="versions")
    pinned = {found[1] for path in script["FILES"] for found in script["PIN"].finditer((source_dir / path).read_text())}
    assert set(script["versions"]()[0]) == pinned


def test_every_place_names_the_same_pythons(source_dir):
    project = (source_dir / "pyproject.toml").read_text()
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    workflow = yaml.safe_load((source_dir / ".github/workflows/wheels.yml").read_text())
    assert declared == workflow["jobs"]["wheel"]["strategy"]["matrix"]["python"]
    minors = re.search(r"for minor in ([\d ]+); do", (source_dir / "scripts/wheel").read_text())[1].split()
    assert declared == [f"3.{minor}" for minor in minors]
    assert f'requires-python = ">={declared[0]}"' in project
    assert "FREE_THREADED" not in (source_dir / "python/CMakeLists.txt").read_text()  # docs/installing.md says so
