#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Errors, kills, power failures and other processes at every call of the file system that a conversion makes.

After each one every output is the old one or the new one, whole; nothing else has changed; the status tells which; and
the same command completes what is left. A fixed sample runs by default, everything with --all.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import datetime
import errno
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import power_loss

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import checkpoints  # noqa: E402
import fixtures  # noqa: E402

SEED = 24
SECONDS = re.compile(rb'"(seconds|bytes_per_second)": [0-9.e+-]+')  # of a report
TIMEOUT = 120
Tree = dict[bytes, tuple]


class Violation(Exception):
    """What was promised and did not hold."""


def tree_of(root: pathlib.Path) -> Tree:
    """Every name below the folder, with its content."""
    found: Tree = {}

    def visit(folder: bytes, prefix: bytes) -> None:
        for name in sorted(os.listdir(folder)):
            path = folder + b"/" + name
            if os.path.islink(path):
                found[prefix + name] = ("link", os.readlink(path))
            elif os.path.isdir(path):
                found[prefix + name] = ("folder",)
                visit(path, prefix + name + b"/")
            else:
                with open(path, "rb") as file:
                    found[prefix + name] = ("file", SECONDS.sub(b"SECONDS", file.read()))

    visit(os.fsencode(root), b"")
    return found


def is_state(name: bytes) -> bool:
    """What a run that was interrupted may leave: its own state, or one hidden file."""
    return any(b".tcast" in part for part in name.split(b"/"))


def put_canaries(root: pathlib.Path) -> None:
    """Files that no command may touch: beside the outputs, above them, and with names that are odd."""
    for folder in (root, root / "work"):
        other = folder / "other model"
        checkpoints.write_sharded(other)
        (folder / "link to another").symlink_to("other model")
        (folder / "leads nowhere").symlink_to("missing")
        (folder / "leads up").symlink_to("..")
        (folder / ".hidden").write_bytes(b"hidden")
        (folder / "-o").write_bytes(b"option")
        (folder / "model.safetensors.bak").write_bytes(b"backup")
        (folder / "SHA256SUMS").write_bytes(b"of something else\n")
        with open(os.fsencode(folder) + b"/caf\xe9 \n.safetensors", "wb") as file:
            file.write(b"not UTF-8")


def external_model(folder: pathlib.Path, name: str, value: float) -> None:
    """An ONNX model with its weights in NAME.data."""
    message = fixtures.message
    place = [(13, message((1, key), (2, text))) for key, text in
             (("location", name + ".data"), ("offset", "0"), ("length", str(4 * 600)))]
    weights = message((1, 600), (2, fixtures.FLOAT), (8, "w"), *place, (14, 1))
    node = fixtures.onnx_node("Add", ["x", "w"], "y", "add")
    shape = message((2, message((1, message((1, 600))))))
    kind = message((1, message((1, fixtures.FLOAT), (2, message((1, message((1, 600))))))))
    del shape
    graph = message((1, node), (2, "graph"), (5, weights), (11, message((1, "x"), (2, kind))),
                    (12, message((1, "y"), (2, kind))))
    (folder / name).write_bytes(message((1, 10), (7, graph), (8, message((2, 17)))))
    (folder / (name + ".data")).write_bytes(fixtures.float32(*[value + i / 7 for i in range(600)]))


@dataclasses.dataclass
class Scenario:
    name: str
    prepare: Callable[[Scenario, pathlib.Path], None]  # writes inputs, and old outputs, into the folder "work"
    command: list[str]
    units: list[list[str]]  # outputs, those of a list change together
    repeats: bool = True  # the same command may run again on its own output
    no_unnamed_files: bool = False
    folder: str = ""  # of a checkpoint: while a file ".tcast" is there, it may be between old and new
    model: str = ""  # of a model with external data: the data is found by its name in the model

    def names(self) -> set[bytes]:
        return {b"work/" + name.encode() for unit in self.units for name in unit}


def only(tree: Tree, names: set[bytes]) -> Tree:
    return {name: entry for name, entry in tree.items() if name in names}


class Runner:
    """Runs the command of a scenario, and judges what it leaves."""

    def __init__(self, tcast: str, library: str, scenario: Scenario, scratch: pathlib.Path) -> None:
        self.tcast, self.library, self.scenario = tcast, library, scenario
        self.root = scratch / "root"
        self.log = scratch / "log"
        self.root.mkdir()
        put_canaries(self.root)
        (self.root / "work").mkdir(exist_ok=True)
        scenario.prepare(self.scenario, self.root / "work")
        self.before = power_loss.Replay(self.root)  # takes the calls of the log, once
        self.nodes = power_loss.read_tree(self.root, {})
        self.old = tree_of(self.root)
        self.calls = self.count_calls()
        self.new = tree_of(self.root)
        self.outputs = {name for name in {*self.old, *self.new}
                        if self.old.get(name) != self.new.get(name) and not is_state(name)
                        and ("folder",) not in (self.old.get(name), self.new.get(name))}
        if scenario.folder:  # files that are the same in both may be absent between
            folder = f"work/{scenario.folder}/".encode()
            listed = self.new[folder + b"SHA256SUMS"][1].splitlines()
            self.outputs |= {folder + line[66:] for line in listed}

    def restore(self) -> None:
        shutil.rmtree(self.root)
        power_loss.write_tree(self.nodes, os.fsencode(self.root))

    def arguments(self) -> list[str]:
        return [self.tcast, *self.scenario.command]

    def environment(self, **values: object) -> dict[str, str]:
        chosen = {"LD_PRELOAD": self.library, "FILE_CALLS_ROOT": str(self.root),
                  **{f"FILE_CALLS_{name}": str(value) for name, value in values.items()}}
        if self.scenario.no_unnamed_files:
            chosen["FILE_CALLS_NO_TMPFILE"] = "1"
        return {**os.environ, **chosen}

    def run(self, **values: object) -> subprocess.CompletedProcess:
        return subprocess.run(self.arguments(), cwd=self.root / "work", capture_output=True, timeout=TIMEOUT,
                              env=self.environment(**values))

    def run_freely(self) -> subprocess.CompletedProcess:
        return subprocess.run(self.arguments(), cwd=self.root / "work", capture_output=True, timeout=TIMEOUT)

    def count_calls(self) -> list[str]:
        """The names of the calls, in order; leaves the new outputs and the log."""
        shutil.rmtree(self.log, ignore_errors=True)
        self.log.mkdir()
        done = self.run(LOG=self.log)
        if done.returncode != 0:
            raise Violation(f"the command fails by itself: {done.stderr.decode()}")
        return [words[2] for words in power_loss.read_log(self.log) if words[1] == "call"]

    # Judging.

    def judge(self, tree: Tree, *, leftovers: bool) -> str:
        """Returns "old", "new" or "between", or raises a Violation."""
        tree = dict(tree)
        state = {name for name in tree if is_state(name)}
        if self.scenario.folder:
            plan = f"work/{self.scenario.folder}/plan.json".encode()
            state |= {plan} & set(tree)
        if not leftovers and state - set(self.new):
            raise Violation(f"it left {sorted(state - set(self.new))}")
        for name in state:
            del tree[name]
        for name in {*tree, *self.old} - self.outputs:
            if is_state(name) or self.may_vary(name, tree):
                continue
            if tree.get(name) != self.old.get(name):
                raise Violation(f"{name!r}, which is no output, has changed")
        found = {name for name in self.outputs if tree.get(name) == self.new.get(name)}
        if found == self.outputs:
            return "new"
        if all(tree.get(name) == self.old.get(name) for name in self.outputs):
            return "old"
        return self.judge_between(tree, state)

    def may_vary(self, name: bytes, tree: Tree) -> bool:
        """Folders for outputs, and data of a model that no model names yet or any more."""
        if tree.get(name, self.old.get(name)) == ("folder",):
            return any(output.startswith(name + b"/") for output in self.outputs)
        if not self.scenario.model or name in self.old:
            return False
        return tree[name][0] == "file" and name.startswith(b"work/" + self.scenario.model.encode() + b".")

    def judge_between(self, tree: Tree, state: set[bytes]) -> str:
        scenario = self.scenario
        for name in self.outputs:
            entry = tree.get(name)
            if entry in (self.old.get(name), self.new.get(name)):
                continue
            if entry is None and scenario.folder:
                continue
            if scenario.model and entry is None and name != b"work/" + scenario.model.encode():
                continue
            raise Violation(f"{name!r} is neither the old file nor the new one: {str(entry)[:80]}")
        if scenario.folder:
            if not any(name.startswith(f"work/{scenario.folder}/.tcast".encode()) for name in state):
                raise Violation("the folder is a mixture, and nothing says so")
            return "between"
        if scenario.model:
            model = b"work/" + scenario.model.encode()
            for version in (self.old, self.new):
                if tree.get(model) != version.get(model):
                    continue
                if model not in version:
                    return "old"
                data = [name for name in version if name.startswith(model + b".") and name[5:] in version[model][1]]
                if all(tree.get(name) == version[name] for name in data):
                    return "between"
            raise Violation("the model is beside data that are not its own")
        for unit in scenario.units:
            names = [b"work/" + name.encode() for name in unit]
            if not any(all(tree.get(name) == version.get(name) for name in names) for version in (self.old, self.new)):
                raise Violation(f"{unit} are not of one version")
        return "between"

    def expect_completion(self, state: str) -> None:
        """The same command ends with the right outputs, and leaves nothing else."""
        done = self.run_freely()
        if done.returncode != 0 and not (state == "new" and not self.scenario.repeats and b"exist" in done.stderr):
            raise Violation(f"the same command does not complete it ({state}): {done.returncode}, {done.stderr.decode()}")
        after = self.judge(tree_of(self.root), leftovers=False)
        if done.returncode == 0 and after != "new":
            raise Violation(f"the same command ends with 0, and the outputs are {after}")

    # What happens at a call.

    def error(self, number: int, code: int) -> None:
        done = self.run(AT=number, ERROR=code)
        if done.returncode not in (0, 1):
            raise Violation(f"status {done.returncode}: {done.stderr.decode()}")
        tree = tree_of(self.root)
        state = self.judge(tree, leftovers=True)
        if done.returncode == 0 and state != "new":
            raise Violation(f"status 0, and the outputs are {state}")
        if done.returncode == 1 and not done.stderr.startswith(b"tcast: "):
            raise Violation(f"no message: {done.stderr!r}")
        self.expect_completion(state)

    def kill(self, number: int) -> None:
        done = self.run(AT=number, KILL=1)
        if done.returncode not in (0, -signal.SIGKILL):
            raise Violation(f"status {done.returncode}: {done.stderr.decode()}")
        self.expect_completion(self.judge(tree_of(self.root), leftovers=True))

    def power(self, points: set[int], variants: list[tuple[str, str]]) -> Iterator[tuple[int, tuple[str, str], str | None]]:
        """At each point, what the log says until then, with what was not synced lost. One pass over the log."""
        changed = True
        for words in [*power_loss.read_log(self.log), [str(1 << 30), "call", "exit"]]:
            if words[1] != "call":
                self.before.step(words[1:], self.log)
                changed = True
            elif changed and int(words[0]) in points:
                for variant in variants:
                    shutil.rmtree(self.root)
                    self.before.write(self.root, names=variant[0], lost=variant[1])
                    yield int(words[0]), variant, self.verdict(
                        lambda: self.expect_completion(self.judge(tree_of(self.root), leftovers=True)))
                changed = False

    @staticmethod
    def verdict(attempt: Callable[[], None]) -> str | None:
        try:
            attempt()
        except Violation as violation:
            return str(violation)
        except subprocess.TimeoutExpired:
            return f"it takes more than {TIMEOUT} s"
        return None

    def pair(self, number: int) -> None:
        """A second process with the same command, while the first one waits before call `number`."""
        ready, go, blocked = os.pipe(), os.pipe(), os.pipe()
        first = subprocess.Popen(self.arguments(), cwd=self.root / "work", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=self.environment(AT=number, PAUSE=f"{ready[1]} {go[0]}"), pass_fds=(ready[1], go[0]))
        os.close(ready[1])
        os.close(go[0])
        statuses = []
        try:
            self.wait_for(ready[0])  # it waits there, or has ended
            second = subprocess.Popen(self.arguments(), cwd=self.root / "work", stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, env=self.environment(BLOCKED=blocked[1]),
                                      pass_fds=(blocked[1],))
            os.close(blocked[1])
            self.wait_for(blocked[0])  # it waits for a lock, or has ended
            os.close(go[1])
            statuses = [(process.communicate(timeout=TIMEOUT)[0], process.returncode) for process in (second, first)]
        finally:
            for fd in (ready[0], blocked[0]):
                os.close(fd)
        for said, status in statuses:
            if status not in (0, 1):
                raise Violation(f"status {status}: {said.decode()}")
        state = self.judge(tree_of(self.root), leftovers=True)
        if any(status == 0 for _, status in statuses) and state != "new":
            raise Violation(f"statuses {[status for _, status in statuses]}, and the outputs are {state}")
        self.expect_completion(state)

    @staticmethod
    def wait_for(fd: int) -> None:
        if not select.select([fd], [], [], TIMEOUT)[0]:
            raise Violation("it hangs")


# Scenarios.


def convert(source: str, *more: str) -> list[str]:
    return ["convert", source, *more, "--threads", "1", "--quiet"]


def put_tensors(folder: pathlib.Path, name: str, first: float) -> None:
    (folder / name).write_bytes(fixtures.safetensors([("w", "F32", [600], fixtures.float32(
        *[first + i / 7 for i in range(600)])), ("step", "I64", [], bytes(8))]))


def new_file(_: Scenario, work: pathlib.Path) -> None:
    put_tensors(work, "in.safetensors", 1)


def old_file(_: Scenario, work: pathlib.Path) -> None:
    put_tensors(work, "in.safetensors", 1)
    put_tensors(work, "out.safetensors", 2)
    (work / "r.json").write_text("an old report\n")
    (work / "p.dot").write_text("an old picture\n")


def linked_file(scenario: Scenario, work: pathlib.Path) -> None:
    old_file(scenario, work)
    (work / "out.safetensors").rename(work / "behind.safetensors")
    (work / "out.safetensors").symlink_to("behind.safetensors")


def new_folder(_: Scenario, work: pathlib.Path) -> None:
    checkpoints.write_sharded(work / "in")


def old_folder(scenario: Scenario, work: pathlib.Path) -> None:
    """An output of ours, of another type, and files of its user."""
    new_folder(scenario, work)
    subprocess.run([TCAST, *convert("in", "-o", "out", "--to", "float16")], cwd=work, check=True, capture_output=True)
    (work / "out/notes.md").write_text("mine\n")
    (work / "out/.gitattributes").write_text("*.safetensors filter=lfs\n")


def new_model(_: Scenario, work: pathlib.Path) -> None:
    external_model(work, "m.onnx", 1)


def old_model(_: Scenario, work: pathlib.Path) -> None:
    external_model(work, "m.onnx", 1)
    external_model(work, "n.onnx", 2)
    (work / "p.dot").write_text("an old picture\n")


ONNX = ["onnx", "convert", "m.onnx", "--to", "float16"]
TCAST = ""
SCENARIOS = [
    Scenario("file", new_file, convert("in.safetensors", "-o", "out.safetensors", "--to", "bf16"), [["out.safetensors"]],
             repeats=False),
    Scenario("file --force", old_file,
             convert("in.safetensors", "-o", "out.safetensors", "--to", "bf16", "--force"), [["out.safetensors"]]),
    Scenario("file --force, no unnamed files", old_file,
             convert("in.safetensors", "-o", "out.safetensors", "--to", "bf16", "--force"), [["out.safetensors"]],
             no_unnamed_files=True),
    Scenario("file through a link", linked_file,
             convert("in.safetensors", "-o", "out.safetensors", "--to", "bf16", "--force", "--verify"),
             [["out.safetensors", "behind.safetensors"]]),
    Scenario("report", old_file, convert("in.safetensors", "-o", "out.safetensors", "--to", "bf16", "--force",
                                         "--report", "r.json"), [["out.safetensors"], ["r.json"]]),
    Scenario("folder", new_folder, convert("in", "-o", "out", "--to", "bf16"), [["out"]], repeats=False, folder="out"),
    Scenario("folder --force", old_folder, convert("in", "-o", "out", "--to", "bf16", "--force"), [["out"]],
             folder="out"),
    Scenario("folder, no unnamed files", new_folder, convert("in", "-o", "out", "--to", "bf16"), [["out"]],
             repeats=False, no_unnamed_files=True, folder="out"),
    Scenario("file --parents", new_file, convert("in.safetensors", "-o", "a/b/out.safetensors", "--to", "bf16", "--parents"),
             [["a/b/out.safetensors"]], repeats=False),
    Scenario("folder --parents", new_folder, convert("in", "-o", "a/b/out", "--to", "bf16", "--parents"), [["a/b/out"]],
             repeats=False, folder="a/b/out"),
    Scenario("model", new_model, [*ONNX, "-o", "n.onnx"], [["n.onnx", "n.onnx.data"]], repeats=False, model="n.onnx"),
    Scenario("model --force", old_model, [*ONNX, "-o", "n.onnx", "--force"], [["n.onnx", "n.onnx.data"]], model="n.onnx"),
    Scenario("picture", old_model, [*ONNX, "-o", "n.onnx", "--force", "--picture", "p.dot"],
             [["n.onnx", "n.onnx.data"], ["p.dot"]], model="n.onnx"),
    Scenario("model in place", new_model, [*ONNX, "-o", "m.onnx", "--force"], [["m.onnx", "m.onnx.data"]],
             model="m.onnx", repeats=False),
]
ERRORS = [errno.EIO, errno.ENOSPC, errno.ENOENT]
MODES = ["error", "kill", "power", "process"]
LOSSES = [("undone", "zeros"), ("kept", "zeros"), ("kept", "nothing")]
READS = {"read", "pread", "pread64", "stat", "lstat", "fstat", "fstatat", "readdir", "readdir64", "opendir", "access",
         "faccessat", "statvfs", "fstatvfs", "realpath", "readlink"}


class Trial:
    """All events of one scenario, or a sample of them."""

    def __init__(self, scenario: Scenario, modes: list[str], sample: int) -> None:
        self.scenario, self.modes, self.sample = scenario, modes, sample
        self.counts: collections.Counter[str] = collections.Counter()
        self.violations: list[str] = []

    def note(self, what: str, why: str | None) -> None:
        self.counts[what.split(" ", maxsplit=1)[0]] += 1
        if why is not None:
            self.violations.append(f"{self.scenario.name}: {what}: {why}")

    def chosen(self, events: list) -> list:
        if self.sample == 0 or len(events) <= self.sample:
            return events
        return sorted(random.Random(f"{SEED} {self.scenario.name}").sample(events, self.sample))

    def run(self, library: str) -> Trial:
        memory = "/dev/shm"
        with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as scratch:
            runner = Runner(TCAST, library, self.scenario, pathlib.Path(scratch).resolve())
            names = dict(enumerate(runner.calls, 1))
            changing = [number for number, name in names.items() if name not in READS]
            if "power" in self.modes:
                for number, variant, why in runner.power({*self.chosen([*changing, 1 << 30])}, LOSSES):
                    self.note(f"power failure before call {number} ({names.get(number)}), {' '.join(variant)}", why)
            if "kill" in self.modes:
                for number in self.chosen(changing):
                    runner.restore()
                    self.note(f"kill before call {number} ({names[number]})", runner.verdict(lambda: runner.kill(number)))
            if "error" in self.modes:
                events = [(number, code) for number in names for code in (ERRORS if self.sample == 0 else ERRORS[:1])]
                for number, code in self.chosen(events):
                    runner.restore()
                    self.note(f"error {errno.errorcode[code]} at call {number} ({names[number]})",
                              runner.verdict(lambda: runner.error(number, code)))
            if "process" in self.modes:
                for number in self.chosen([*names]):
                    runner.restore()
                    self.note(f"process at call {number} ({names[number]})", runner.verdict(lambda: runner.pair(number)))
        return self


def run_trial(scenario: str, modes: list[str], sample: int, tcast: str, library: str) -> Trial:
    global TCAST
    TCAST = tcast
    return Trial(next(known for known in SCENARIOS if known.name == scenario), modes, sample).run(library)


def record(trials: list[Trial]) -> None:
    """Writes the counts into docs/verification.md."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/verification.md"
    rows = [f"| {trial.scenario.name} | {' | '.join(f'{trial.counts[mode]:,}' for mode in MODES)} |" for trial in trials]
    table = "\n".join([f"{datetime.date.today()}; every promise held.", "", f"| outputs | {' | '.join(MODES)} |",
                       "|---" * (len(MODES) + 1) + "|", *rows])
    marked = re.compile(r"(<!-- crashes -->\n).*(<!-- /crashes -->)", re.DOTALL)
    page.write_text(marked.sub(lambda match: match[1] + table + "\n" + match[2].lstrip("\n"), page.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcast", required=True)
    parser.add_argument("--calls", required=True, help="the built file_calls.c")
    parser.add_argument("--sample", type=int, default=4, help="events of each kind and scenario")
    parser.add_argument("--all", action="store_true", help="every call, not a sample")
    parser.add_argument("--scenario", default="", help="only those with this in their names")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--record", action="store_true", help="write the counts into docs/verification.md")
    known = parser.parse_args()
    chosen = [scenario.name for scenario in SCENARIOS if known.scenario in scenario.name]
    modes = [known.mode] if known.mode else MODES
    fixed = (modes, 0 if known.all else known.sample, os.path.abspath(known.tcast), os.path.abspath(known.calls))
    trials = []
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for trial in pool.map(run_trial, chosen, *([value] * len(chosen) for value in fixed)):
            trials.append(trial)
            counts = ", ".join(f"{trial.counts[mode]} {mode}" for mode in modes)
            print(f"{trial.scenario.name}: {counts}; {len(trial.violations)} violations", flush=True)
            for line in trial.violations:
                print(f"  {line}", flush=True)
    if any(trial.violations for trial in trials):
        return 1
    if known.record:
        record(trials)
    return 0


if __name__ == "__main__":
    sys.exit(main())
