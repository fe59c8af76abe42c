# SPDX-License-Identifier: Apache-2.0
"""tensorcast.ray's tasks and its end on Ctrl-C, with threads for a cluster; tests/ray has a real one."""

import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import tensorcast as tc
import tensorcast.ray
from tensorcast import checkpoint

# What tensorcast.ray uses of Ray. A task waits for the file "gate", and never fails.
RAY = """
import os, threading, time, types
class RayTaskError(Exception): pass
exceptions = types.SimpleNamespace(RayTaskError=RayTaskError)
def is_initialized(): return True
def run(done, function, arguments):
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.01)
    done.append(function(*arguments))
class Task:
    def __init__(self, function): self.function = function
    def options(self, **_): return self
    def remote(self, *arguments):
        self.done = []
        threading.Thread(target=run, args=(self.done, self.function, arguments), daemon=True).start()
        return id(self)
remote = Task
def wait(references, num_returns, timeout):
    open(os.environ["GATE"] + ".waiting", "w").close()
    time.sleep(0.01)
    return [], references
"""


@pytest.fixture
def planned(tmp_path):
    (tmp_path / "in").mkdir()
    tc.save(tmp_path / "in" / "model.safetensors", {"a.weight": np.ones((4, 32), np.float32)})
    checkpoint.plan(tmp_path / "in", tmp_path / "out", "bfloat16")
    return tmp_path / "out"


def marks(folder):
    return list((folder / ".tcast").glob("stop-*"))


def test_ctrl_c_ends_the_driver_at_once_and_marks_the_folder(planned, tmp_path):
    (tmp_path / "ray.py").write_text(RAY)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "GATE": str(tmp_path / "gate")}
    driver = subprocess.Popen(
        [sys.executable, "-m", "tensorcast.ray", planned / "plan.json"],
        env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "gate.waiting").exists():
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.01)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=300)
    assert driver.returncode == 130, said
    assert said.splitlines()[-1] == "interrupted; the converted shards are kept, and the same command goes on"
    assert len(marks(planned)) == 1
    assert [shard.done_before for shard in checkpoint.status(planned).shards] == [False]
    checkpoint.run_shard(planned)
    checkpoint.finish(planned)
    assert not (planned / ".tcast").exists()


def test_a_task_whose_driver_ended_does_nothing(planned):
    stop = tensorcast.ray._StopMark.beside(str(planned))
    stop.set()
    with pytest.raises(tc.Cancelled):
        tensorcast.ray._run(str(planned), 0, 1, stop.path)
    assert not checkpoint.status(planned).shards[0].done_before


def test_a_task_converts_its_shard(planned):
    done = tensorcast.ray._run(str(planned), 0, 1, tensorcast.ray._StopMark.beside(str(planned)).path)
    assert done["file"] == "model.safetensors"
    assert checkpoint.status(planned).shards[0].done_before


def test_a_running_task_sees_the_mark(planned, monkeypatch):
    stop = tensorcast.ray._StopMark.beside(str(planned))
    monkeypatch.setattr(tensorcast.ray, "_POLL_SECONDS", 0)
    seen = []

    def run_shard(output, shard, threads, progress):
        seen.append(progress(1, 2, "a.weight"))
        stop.set()
        seen.append(progress(1, 2, "a.weight"))
        return checkpoint.status(output)

    monkeypatch.setattr(checkpoint, "run_shard", run_shard)
    tensorcast.ray._run(str(planned), 0, 1, stop.path)
    assert seen == [True, False]


def test_an_error_of_one_shard_stops_the_others(planned, monkeypatch):
    class RayTaskError(Exception):
        cause = tc.CastError("the shard is damaged")

    def get(_):
        raise RayTaskError

    def remote(_):
        return types.SimpleNamespace(options=lambda **_: types.SimpleNamespace(remote=lambda *_: object()))

    fake = types.SimpleNamespace(
        is_initialized=lambda: True, remote=remote, get=get, wait=lambda references, **_: (references[:1], []),
        exceptions=types.SimpleNamespace(RayTaskError=RayTaskError),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", fake)
    pending = checkpoint.status(planned).shards * 2
    monkeypatch.setattr(checkpoint, "status", lambda _: types.SimpleNamespace(shards=pending))
    with pytest.raises(tc.CastError, match="the shard is damaged"):
        tensorcast.ray.convert(planned)
    assert len(marks(planned)) == 1
    assert tensorcast.ray._running == []


@pytest.mark.parametrize("place", ["", "/", "/plan.json", "/.tcast", "/.tcast/plan.json"])
def test_the_mark_is_in_the_work_folder(place):
    path = tensorcast.ray._StopMark.beside(f"/shared/out{place}").path
    assert path.startswith("/shared/out/.tcast/stop-")
    url = tensorcast.ray._StopMark.beside(f"memory://bucket/out{place}").path
    assert url.startswith("memory://bucket/out/.tcast/stop-")
