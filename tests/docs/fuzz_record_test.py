# SPDX-License-Identifier: Apache-2.0
"""Runs of fuzz targets add up in docs/verification.md, where each target has a description."""

import importlib.machinery
import importlib.util
import re

import pytest


def script(source_dir, name):
    loader = importlib.machinery.SourceFileLoader(name, str(source_dir / "scripts/make" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def targets(source_dir):
    return [*(source_dir / "src").rglob("*_fuzz.cpp"), *(source_dir / "tests/fuzz").glob("*_fuzz.cpp")]


@pytest.fixture(scope="module")
def record(source_dir):
    return script(source_dir, "fuzz-record")


def test_runs_add_up(record):
    page = "before\n<!-- fuzz -->\nold\n<!-- /fuzz -->\nafter\n"
    page = record.added(page, "npy_fuzz", 1000, 90, "2026-01-01")
    page = record.added(page, "gguf_fuzz", 5, 3600, "2026-01-02")
    page = record.added(page, "npy_fuzz", 234, 30, "2026-01-03")
    assert "| `npy_fuzz` | 1,234 | 2.0 | 2026-01-03 |" in page
    assert "| `gguf_fuzz` | 5 | 60.0 | 2026-01-02 |" in page
    assert "\n1.0 hours of a processor" in page and page.endswith("\nafter\n") and "old" not in page


def test_each_target_is_described(source_dir):
    page = (source_dir / "docs/verification.md").read_text()
    described = set(re.findall(r"`(\w+_fuzz)`", page.partition("<!-- fuzz -->")[0]))
    assert {path.stem for path in targets(source_dir)} <= described


def test_each_function_of_c_is_fuzzed(source_dir):
    headers = (source_dir / "include/tensorcast").glob("*.h")
    functions = {name for path in headers for name in re.findall(r"\b(tc_\w+)\(", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL))}
    called = {name for path in targets(source_dir) for name in re.findall(r"\btc_\w+", path.read_text())}
    without_input = {"tc_version", "tc_describe"}
    of_older_programs = {"tc_cast_options_init", "tc_cast_report_init", "tc_promote_options_init"}  # _sized, with one size
    assert len(functions) > 80
    assert functions - called - without_input - of_older_programs == set()


def test_seeds_are_those_of_the_models(source_dir):
    made = script(source_dir, "fuzz-seeds")
    assert {path.name: path.read_text() for path in made.SEEDS.iterdir()} == made.seeds()
