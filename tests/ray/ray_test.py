# SPDX-License-Identifier: Apache-2.0
"""tensorcast.ray on a real cluster of three nodes: lost workers, lost nodes, a lost driver. The result is byte-identical
to one process's."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import ray
import safetensors.numpy
from ray.cluster_utils import Cluster

import tensorcast.ray
from tensorcast import checkpoint

SHARDS = 9
ELEMENTS = 8 << 20  # of a shard: 32 MiB, so that a worker can be killed in the middle


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.name != ".tcast-files.json"}


def shard_workers():
    """Processes of this machine that convert a shard: Ray names a worker after its task."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::tensorcast.run_shard" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass  # it has ended
    return found


def wait_for(condition, what):
    for _ in range(6000):  # 5 minutes: a busy machine
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"there never was {what}")


class RayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.source = cls.folder / "model"
        cls.source.mkdir()
        random = np.random.default_rng(1)
        for i in range(SHARDS):
            tensors = {f"layers.{i}.weight": random.standard_normal(ELEMENTS, np.float32).reshape(-1, 1024)}
            safetensors.numpy.save_file(tensors, cls.source / f"model-{i + 1:05}-of-{SHARDS:05}.safetensors")
        tensorcast.convert(cls.source, cls.folder / "expected", "bfloat16", verify=True)
        cls.expected = files_of(cls.folder / "expected")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        # Ray's workers inherit the environment.
        self.gate = self.folder / "gate"
        self.gate.touch()
        os.environ["RAY_TEST_GATE"] = str(self.gate)
        os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).with_name("gate"))
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        self.nodes = [self.cluster.add_node(num_cpus=1) for _ in range(2)]
        self.addCleanup(self.cluster.shutdown)
        self.addCleanup(ray.shutdown)
        self.out = self.folder / self.id().rpartition(".")[2]
        # verify=True reads every shard twice, which leaves time to interrupt it.
        checkpoint.plan(self.source, self.out, "bfloat16", verify=True)

    def connect(self):
        ray.init(address=self.cluster.address, log_to_driver=False)
        self.cluster.wait_for_nodes()

    def check(self):
        files = files_of(self.out)
        self.assertEqual(sorted(files), sorted(self.expected))
        self.assertEqual([name for name in files if files[name] != self.expected[name]], [])  # no difference of 300 MB

    def run_and(self, disturb):
        """Converts, and calls `disturb` as soon as a worker has a shard."""
        self.connect()
        errors = []

        def disturbing():
            try:
                disturb()
            except BaseException as error:  # noqa: BLE001: the test fails with it
                errors.append(error)

        thread = threading.Thread(target=disturbing)
        thread.start()
        seen = []
        done = tensorcast.ray.convert(self.out, progress=lambda *now: seen.append(now))
        thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(done.shards), SHARDS)
        self.assertEqual(seen[-1][0], seen[-1][1])
        self.assertEqual(seen, sorted(seen, key=lambda now: now[0]))
        self.check()

    def test_all_nodes_work(self):
        """A node has one CPU, so tasks that run at once are on different nodes."""
        self.run_and(lambda: wait_for(lambda: len(shard_workers()) > 2, "a third worker"))

    def test_worker_killed(self):
        self.run_and(lambda: os.kill(wait_for(shard_workers, "a worker")[0], signal.SIGKILL))

    def test_node_removed(self):
        def remove():
            wait_for(lambda: len(shard_workers()) > 1, "a second worker")
            self.cluster.remove_node(self.nodes[0], allow_graceful=False)

        self.run_and(remove)

    def driver(self):
        command = [sys.executable, "-m", "tensorcast.ray", self.out / "plan.json", "--address", self.cluster.address]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def interrupt_driver(self, sent, seconds=60):
        """Of a driver whose tasks run; the gate is closed, else a fast machine is done before the signal."""
        self.gate.unlink(missing_ok=True)
        driver = self.driver()
        try:
            wait_for(lambda: any(shard.done_before for shard in checkpoint.status(self.out).shards), "a finished shard")
            wait_for(shard_workers, "a task of the driver")
            driver.send_signal(sent)
            _, said = driver.communicate(timeout=seconds)
        finally:
            driver.kill()
            driver.communicate()
        sent_at = time.monotonic()
        wait_for(lambda: not shard_workers(), "an end of the driver's tasks")
        self.assertLess(time.monotonic() - sent_at, 60, "the driver's tasks ended late")
        return driver.returncode, said

    def interrupt_and_go_on(self, sent):
        status, said = self.interrupt_driver(sent)
        left = [shard.done_before for shard in checkpoint.status(self.out).shards]
        self.assertIn(True, left)
        self.assertIn(False, left)
        self.gate.touch()
        self.assertFalse((self.out / "model.safetensors.index.json").exists())
        again = self.driver()
        shown, failed = again.communicate(timeout=300)
        self.assertEqual(again.returncode, 0, failed)
        self.assertIn("the checkpoint is complete", shown)
        self.check()
        return status, said

    def test_quantized_decoded_and_quantized_in_one_pass(self):
        """Of codes and scales, as one process makes them; weights that loaders join have tensor scales of two shards."""
        matrices = self.folder / "matrices"
        matrices.mkdir()
        random = np.random.default_rng(2)
        names = [f"model.layers.{i}.mlp.{name}.weight" for i in range(3) for name in ("gate_proj", "up_proj", "down_proj")]
        for i, first in enumerate(range(0, 9, 2)):
            tensors = {name: random.standard_normal((256, 512), np.float32) for name in names[first : first + 2]}
            safetensors.numpy.save_file(tensors, matrices / f"model-{i + 1:05}-of-00005.safetensors")
        self.connect()
        for name, begin, to in (("float8", "matrices", "fp8-block"), ("nvfp4", "float8", "nvfp4"), ("wide", "nvfp4", "bfloat16")):
            tensorcast.convert(self.folder / begin, self.folder / f"{name}-of-one", to)
            checkpoint.plan(self.folder / begin, self.folder / name, to)
            tensorcast.ray.convert(self.folder / name)
            self.assertEqual(files_of(self.folder / name), files_of(self.folder / f"{name}-of-one"))

    def test_driver_killed(self):
        status, _ = self.interrupt_and_go_on(signal.SIGKILL)
        self.assertEqual(status, -signal.SIGKILL)

    def test_driver_interrupted(self):
        status, said = self.interrupt_and_go_on(signal.SIGINT)
        self.assertEqual(status, 130, said)
        self.assertIn("the same command goes on", said)

    def test_driver_interrupted_many_times(self):
        """INTERRUPTIONS, such as 50, while a process for each core keeps the machine busy."""
        count = int(os.environ.get("INTERRUPTIONS", "0"))
        if count == 0:
            self.skipTest("scripts/checks/ray --interruptions N")
        busy = [subprocess.Popen(["nice", sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
        try:
            for i in range(count):
                status, said = self.interrupt_driver(signal.SIGINT, seconds=10)
                self.assertEqual(status, 130, f"interruption {i + 1}: {said}")
                print(f"{i + 1} of {count} interrupted", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.gate.touch()
        again = self.driver()
        _, failed = again.communicate(timeout=600)
        self.assertEqual(again.returncode, 0, failed)
        self.check()

    def test_errors_name_the_shard(self):
        shard = self.source / f"model-00004-of-{SHARDS:05}.safetensors"
        content = shard.read_bytes()
        self.addCleanup(shard.write_bytes, content)
        shard.write_bytes(content[:-1])
        self.connect()
        with self.assertRaisesRegex(tensorcast.FileError, "changed since") as caught:
            tensorcast.ray.convert(self.out, retries=0)
        self.assertEqual(caught.exception.file, str(shard))


if __name__ == "__main__":
    unittest.main()
