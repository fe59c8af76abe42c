# SPDX-License-Identifier: Apache-2.0
"""Workflows call scripts of the project and nothing else, so that anybody can run what they run."""

import os
import re
import subprocess
import zipfile

import pytest
import yaml

WORKFLOWS = {
    "tests": ["./scripts/test --fast", "./scripts/test --sanitizers", "./scripts/lint", "./scripts/lint-python"],
    "fuzzing": ["./scripts/fuzz 600"],
    "arm": ["./scripts/checks/arm"],
    "wheels": ["./scripts/wheel --test", "./scripts/checks/reproducible", "./scripts/package", "./scripts/static"],
    "site": ["./scripts/checks/web", "./scripts/docs"],
    "long": ["./scripts/checks/crashes"],
    "clusterfuzzlite": [],
}
# A tag can be moved to other code, a commit cannot.
USED = re.compile(r"(actions/[a-z-]+|google/clusterfuzzlite/actions/[a-z_]+|pypa/gh-action-pypi-publish)@[0-9a-f]{40}")
# What jobs may do besides reading: publish the site, or a release with its provenance.
MORE = {
    ("site", "publish"): {"pages": "write", "id-token": "write"},
    ("wheels", "publish"): {"contents": "read", "id-token": "write", "attestations": "write"},
}


@pytest.fixture(scope="module")
def workflows(source_dir):
    folder = source_dir / ".github/workflows"
    # "on" is true in YAML 1.1.
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yml"))}


def commands(workflow):
    for job in workflow["jobs"].values():
        rows = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for step in job["steps"]:
            if "run" in step:
                for row in rows:
                    yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda name, row=row: row[name[1]], step["run"])


def test_there_is_one_for_each_purpose(workflows):
    assert set(workflows) == set(WORKFLOWS)
    for name, wanted in WORKFLOWS.items():
        assert set(wanted) <= set(commands(workflows[name])), name


@pytest.mark.parametrize("name", WORKFLOWS)
def test_steps_call_scripts_that_exist(source_dir, workflows, name):
    for command in commands(workflows[name]):
        assert re.fullmatch(r"\./scripts/(?:checks/)?[a-z-]+( [a-z0-9_.-]+)*", command), command
        script, *options = command.removeprefix("./").split()
        assert os.access(source_dir / script, os.X_OK), f"{script} cannot be run"
        text = (source_dir / script).read_text()
        for option in options:
            assert option in text or option.isdigit(), f"{script} has no {option}"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_jobs_are_bounded_and_may_only_read(workflows, name):
    workflow = workflows[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["name"] == name and workflow[True]
    for title, job in workflow["jobs"].items():
        assert job.get("permissions") == MORE.get((name, title))
        assert job["timeout-minutes"] <= 330 and "runs-on" in job
        assert set(job) <= {"runs-on", "container", "timeout-minutes", "steps", "strategy", "name", "needs", "if", "permissions", "environment"}
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert set(step) <= {"run", "uses", "with", "env", "if"}
            assert "uses" not in step or USED.fullmatch(step["uses"]), step
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"] == {"persist-credentials": False}  # no script needs the token


def test_each_action_is_one_commit_whose_version_is_said(source_dir):
    pins = {}
    for path in (source_dir / ".github/workflows").glob("*.yml"):
        for line in re.findall(r"^.*\buses:.*$", path.read_text(), re.MULTILINE):
            pinned = re.fullmatch(r" +- uses: (\S+)@([0-9a-f]{40}) # (v\d+(?:\.\d+)*)", line)
            assert pinned, f"{path.name}: {line.strip()} is not pinned by a commit, with its version in a comment"
            assert pins.setdefault(pinned[1], pinned[2]) == pinned[2], f"{pinned[1]} has two commits"


def test_a_release_is_published_by_what_was_tried(workflows):
    job = workflows["wheels"]["jobs"]["publish"]
    assert set(job["needs"]) == set(workflows["wheels"]["jobs"]) - {"publish"}
    assert job["if"] == "startsWith(github.ref, 'refs/tags/v')"
    used = [step["uses"].partition("@")[0] for step in job["steps"]]
    assert used[-2:] == ["actions/attest-build-provenance", "pypa/gh-action-pypi-publish"]


def test_fuzzers_are_built_as_services_ask(source_dir):
    build = (source_dir / ".clusterfuzzlite/build.sh").read_text()
    assert "--target fuzzers" in build and "fuzzers.txt" in build and "_seed_corpus.zip" in build
    assert all("source scripts/sourced/fuzz-seeds" in text for text in (build, (source_dir / "scripts/fuzz").read_text()))
    seeds = subprocess.run(["bash", "-c", "source scripts/sourced/fuzz-seeds; seeds_of convert_fuzz tests/fuzz"],
                           cwd=source_dir, capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    assert "tests/fuzz/corpus/convert_fuzz" in seeds and "src/formats/gguf/testdata/valid" in seeds
    for path in (".clusterfuzzlite/build.sh", "tests/fuzz/oss-fuzz/build.sh"):
        assert os.access(source_dir / path, os.X_OK)
        assert subprocess.run(["bash", "-n", source_dir / path]).returncode == 0
    assert ".clusterfuzzlite/build.sh" in (source_dir / "tests/fuzz/oss-fuzz/build.sh").read_text()
    for folder in (".clusterfuzzlite", "tests/fuzz/oss-fuzz"):
        assert yaml.safe_load((source_dir / folder / "project.yaml").read_text())["language"] == "c++"
        assert "./scripts/bootstrap --build-only" in (source_dir / folder / "Dockerfile").read_text()


def test_interfaces_are_compared_where_there_is_a_release(source_dir, tmp_path):
    """The check says why it skips, and takes abidiff's word for what is incompatible."""
    for name, status in (("same", 0), ("added", 4), ("broken", 12), ("failed", 1)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "abidiff").write_text(f"#!/bin/sh\nexit {status}\n")
        (folder / "abidiff").chmod(0o755)
        command = [source_dir / "scripts/checks/abi", "old.so", "new.so"]
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert result.returncode == (0 if status in (0, 4) else 1), result.stderr
        assert "compatible with old.so" in result.stdout if result.returncode == 0 else "checks/abi: " in result.stderr


def test_templates_are_forms(source_dir):
    for path in (source_dir / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.stem == "config":
            continue
        assert form["name"] and form["description"] and form["body"], path
        for part in form["body"]:
            assert part["type"] in ("input", "textarea") and part["id"] and part["attributes"]["label"]


def test_hooks_before_a_commit_call_scripts(source_dir):
    config = yaml.safe_load((source_dir / ".pre-commit-config.yaml").read_text())
    for repository in config["repos"]:
        assert repository["repo"] == "local"  # nothing is fetched but what the scripts fetch
        for hook in repository["hooks"]:
            assert os.access(source_dir / hook["entry"].split()[0], os.X_OK)


def test_wheels_are_compared_by_their_bytes(source_dir, tmp_path):
    def wheel(name, text, year=1980):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(zipfile.ZipInfo("x.py", (year, 1, 1, 0, 0, 0)), text)
        return tmp_path / name

    def compared(*wheels):
        command = [source_dir / "scripts/checks/reproducible", *wheels]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.returncode, result.stdout

    first = wheel("a.whl", "1")
    assert compared(first, wheel("b.whl", "1"))[0] == 0
    code, said = compared(first, wheel("c.whl", "2"))
    assert code == 1 and "x.py: contents" in said
    code, said = compared(first, wheel("d.whl", "1", 1990))
    assert code == 1 and "x.py: time or mode" in said
