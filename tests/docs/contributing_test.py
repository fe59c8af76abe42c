# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md begins with the daily loop, has a row for each layer, and each script in one of three lists."""

import os
import re
import signal
import subprocess

import pytest


@pytest.fixture(scope="module")
def text(source_dir):
    return (source_dir / "CONTRIBUTING.md").read_text()


def test_it_begins_with_the_loop(text):
    first = text.partition("```sh\n")[2].partition("```")[0]
    assert text.index("```sh\n") < 200 and "--target" in first and "--gtest_filter=-*Slow*" in first


def test_each_layer_has_a_row(source_dir, text):
    layers = {path.parent.name for path in (source_dir / "src").glob("*/CMakeLists.txt")}
    rows = re.findall(r"^\| `src/(\w+)/` \| `\1_test`(?:, preset (quick|release))? \| `build/(?:dev|quick|release)/src/\1/\1_test .*` \| \d+ \|$", text, re.MULTILINE)
    rows = [name for name, _ in rows]
    assert len(rows) == len(set(rows)) and set(rows) == layers


def test_each_script_is_in_one_list(source_dir, text):
    lists = text.partition("## Scripts\n")[2].partition("\nScripts that others rely on")[0]
    assert re.findall(r"^\*\*([\w ]+)[:.]", lists, re.MULTILINE)[:3] == ["Daily", "Before a request", "Rare"]
    named = re.findall(r"^\./(scripts/[\w/-]+)", lists, re.MULTILINE)
    there = {path.relative_to(source_dir).as_posix() for folder in ("scripts", "scripts/checks", "scripts/make") for path in (source_dir / folder).iterdir() if path.is_file()}
    helpers = {"scripts/bootstrap", "scripts/make/arm64-root", "scripts/make/openvino-headers"}  # the loop's, and named with zig-target
    assert len(named) == len(set(named))
    assert set(named) == there - helpers


def test_each_script_says_more(source_dir):
    silent = []
    for folder in ("scripts", "scripts/checks", "scripts/make"):
        for script in sorted(path for path in (source_dir / folder).iterdir() if path.is_file()):
            with subprocess.Popen([script, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True) as started:
                try:
                    printed, _ = started.communicate(timeout=60)
                except subprocess.TimeoutExpired:
                    os.killpg(started.pid, signal.SIGKILL)
                    printed = ""
            if started.returncode != 0 or len(printed.split()) < 10:
                silent.append(f"{script.relative_to(source_dir)}: {started.returncode}")
    assert silent == []


def test_words_that_are_confused_are_side_by_side(text):
    rows = re.findall(r"^\| (format|block format|layout|scheme|recipe) \|", text, re.MULTILINE)
    assert rows == ["format", "block format", "layout", "scheme", "recipe"]
    assert "docs/adding-a-spelling.md" in text


def test_programs_of_the_table_can_be_run(source_dir, text):
    programs = {program.split()[0] for program in re.findall(r"^\| .* \| `((?:\./)?(?:tests|scripts)/[^`]*)` \| ", text, re.MULTILINE)}
    assert programs and all(os.access(source_dir / program, os.X_OK) for program in programs)


@pytest.mark.parametrize("page", ["block-format", "dtype", "number", "spelling", "an-option"])
def test_patches_of_pages_fit(source_dir, page):
    """scripts/checks/new-* build and run them; here each finds its lines."""
    (path,) = (source_dir / "docs").glob(f"adding-*{page}.md")
    patches = re.findall(r"^```diff\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    for patch in patches:
        command = ["patch", "--dry-run", "--batch", "--fuzz=1", "--strip=1", f"--directory={source_dir}"]
        result = subprocess.run(command, input=patch, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout
    assert patches
