#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversions of checkpoints in steps: plan, run-shard, finish; crashes at any moment, full disks, several processes."""

import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import checkpoint_test
import checkpoints
import running


class ShardsTest(checkpoint_test.CheckpointTest):
    def tree(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
                if path.is_file() and path.name != checkpoint_test.RECORD}

    def plan(self):
        return json.loads((self.out / ".tcast/plan.json").read_text())

    def staged(self, name):
        fingerprint, = (shard["fingerprint"] for shard in self.plan()["shards"] if shard["file"] == name)
        return self.out / ".tcast/shards" / fingerprint

    def converted(self, source, *options):
        self.done("convert", source, "-o", "whole", "--to", "bf16", *options)
        return self.tree(self.folder / "whole")


class StepsTest(ShardsTest):
    def test_the_source_of_an_edited_plan_is_a_folder_by_its_whole_path(self):
        self.done("plan", self.source(), "-o", "out", "--to", "bf16")
        plan = self.out / ".tcast/plan.json"
        text = plan.read_text()
        for source, said in (("in", "not an absolute path"), ("", "not an absolute path"), ("/in\\u0000", "a zero byte"),
                             ("/", "the plan is damaged")):
            plan.write_text(text.replace(json.dumps(str(self.folder / "in")), f'"{source}"'))
            self.assertIn(said, self.refused("run-shard", "out"))

    def test_the_steps_give_what_convert_gives(self):
        source = self.source()
        self.assertIn("plan.json", self.done("plan", source, "-o", "out", "--to", "bf16"))
        plan = self.plan()
        self.assertEqual([shard["file"] for shard in plan["shards"]], list(checkpoints.SHARDS))
        message = self.refused("finish", "out")
        self.assertIn("2 of 2 shards are not converted yet", message)
        self.assertIn("model-00001", message)
        self.done("run-shard", "out/plan.json", "1")
        self.assertIn("1 of 2 shards", self.refused("finish", "out"))
        records = list((self.out / ".tcast/shards").glob("*.json"))
        self.assertEqual([path.name for path in records], [plan["shards"][1]["fingerprint"] + ".json"])
        record = json.loads(records[0].read_text())
        self.assertEqual(len(record["sha256"]), 64)
        self.assertEqual(record["fingerprint"], plan["shards"][1]["fingerprint"])
        # Until finish there is no checkpoint.
        self.assertEqual(sorted(os.listdir(self.out)), [".tcast"])
        self.assertIn("done before", self.done("run-shard", "out"))
        self.done("finish", "out")
        self.assertEqual(self.tree(self.out), self.converted(source))
        self.check_sums(self.out)
        self.assertIn("the conversion is complete", self.refused("finish", "out"))

    def test_parts_by_option_and_environment(self):
        source = checkpoints.write_many(self.folder / "in", shards=5, elements=1000)
        self.done("plan", source, "-o", "out", "--to", "bf16")

        def shards(*options, **variables):
            text = self.done("run-shard", "out", "--json", *options, env={**os.environ, **variables})
            return [int(shard["file"][6:11]) - 1 for shard in json.loads(text)["shards"]]

        self.assertEqual(shards("--shard-of", "1/3"), [1, 4])
        self.assertEqual(shards(SLURM_ARRAY_TASK_ID="7", SLURM_ARRAY_TASK_MIN="5", SLURM_ARRAY_TASK_COUNT="3"), [2])
        self.assertEqual(shards(RANK="0", WORLD_SIZE="2"), [0, 2, 4])
        self.assertEqual(shards("--shard-of", "auto/4", JOB_COMPLETION_INDEX="3"), [3])
        for options, variables in ((["--shard-of", "3/3"], {}), (["--shard-of", "auto"], {}), ([], {"RANK": "2", "WORLD_SIZE": "2"}),
                                   ([], {"JOB_COMPLETION_INDEX": "1"}), ([], {"RANK": "x", "WORLD_SIZE": "2"}), (["9"], {})):
            status = 2 if "--shard-of" in options else 1
            self.exits(status, "run-shard", "out", *options, env={**os.environ, **variables})
        self.done("finish", "out")

    def test_a_source_that_changed(self):
        source = self.source()
        self.done("plan", source, "-o", "out", "--to", "bf16")
        shard = source / checkpoint_test.SECOND
        before = shard.stat()
        content = shard.read_bytes()
        shard.write_bytes(content[:-8] + b"12345678")
        self.assertIn("has changed since", self.refused("run-shard", "out", "1"))
        shard.write_bytes(content.replace(b"model.norm", b"model.form"))  # same size, same time: the header tells
        os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertIn("has changed since", self.refused("run-shard", "out", "1"))
        self.done("run-shard", "out", "0")
        shard.write_bytes(content)
        os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.done("run-shard", "out")
        self.done("finish", "out")

    def test_other_options_do_not_mix(self):
        source = self.source()
        self.done("plan", source, "-o", "out", "--to", "bf16")
        self.done("run-shard", "out", "0")
        self.assertIn("unfinished conversion", self.refused("convert", source, "-o", "out", "--to", "f16"))
        self.done("convert", source, "-o", "out", "--to", "f16", "--force")
        self.done("convert", source, "-o", "half", "--to", "f16")
        self.assertEqual(self.tree(self.out), self.tree(self.folder / "half"))

    def test_a_damaged_shard_is_converted_again(self):
        source = self.source()
        self.done("plan", source, "-o", "out", "--to", "bf16")
        self.done("run-shard", "out")
        self.staged(checkpoint_test.FIRST).write_bytes(b"short")
        self.assertIn("1 of 2 shards", self.refused("finish", "out"))
        self.done("convert", source, "-o", "out", "--to", "bf16")
        self.assertEqual(self.tree(self.out), self.converted(source))

    def test_hostile_plans(self):
        self.done("plan", self.source(), "-o", "out", "--to", "bf16")
        path = self.out / ".tcast/plan.json"
        original = path.read_text()
        plan = json.loads(original)

        def changed(*keys, to):
            copy = json.loads(original)
            inner = copy
            for key in keys[:-1]:
                inner = inner[key]
            inner[keys[-1]] = to
            return json.dumps(copy)

        texts = ["", "{}", original[:-20], changed("shards", 0, "file", to="../../evil"),
                 changed("shards", 0, "file", to="/tmp/evil"), changed("inputs", 0, "file", to="../secret"),
                 changed("copies", 0, "file", to="a/../../b"), changed("configs", 0, "file", to=".."),
                 changed("models", 0, "index", to="../i"), changed("shards", 0, "tensors", 0, "begin", to=1 << 62),
                 changed("shards", 0, "tensors", 0, "input", to=99), changed("shards", 0, "tensors", 0, "shape", to=[1 << 40] * 3),
                 changed("shards", 0, "tensors", 0, "to", to="float32"), changed("settings", "scale", to=2),
                 changed("settings", "out_of_range", to=9), changed("models", 0, "shards", to=[7]), changed("source", to="/"),
                 changed("copies", to=[]), original + " "]
        for text in texts:
            path.write_text(text)
            message = self.refused("run-shard", "out")
            self.assertIn("plan is damaged", message, text[:200])
            self.assertIn("plan is damaged", self.refused("finish", "out"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["in", "out"])
        self.assertTrue(plan["shards"])


class StateTest(ShardsTest):
    """The hidden state of a conversion that somebody removes, replaces or shares."""

    def planned(self):
        source = self.source()
        self.done("plan", source, "-o", "out", "--to", "bf16")
        return source

    def test_locks(self):
        source = self.planned()
        commands = (["run-shard", "out"], ["finish", "out"], ["plan", source, "-o", "out", "--to", "bf16"],
                    ["convert", source, "-o", "out", "--to", "bf16"], ["convert", source, "-o", "out", "--to", "f16", "--force"])
        with open(self.out / ".tcast/lock", "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for command in commands:
                self.assertIn("another run of tensorcast works in this folder", self.refused(*command))
            fcntl.flock(lock, fcntl.LOCK_SH)
            for command in commands[1:]:
                self.assertIn("another run of tensorcast works in this folder", self.refused(*command))
            self.done(*commands[0])
        self.done("finish", "out")

    def test_a_missing_record_is_an_error(self):
        self.planned()
        self.done("run-shard", "out")
        record = pathlib.Path(str(self.staged(checkpoint_test.FIRST)) + ".json")
        text = record.read_text()
        for content in ("", "{}", json.dumps({**json.loads(text), "sha256": ""}), json.dumps({**json.loads(text), "bytes": 7})):
            record.write_text(content)
            self.assertIn("1 of 2 shards are not converted yet", self.refused("finish", "out"))
        record.unlink()
        self.assertIn("1 of 2 shards are not converted yet", self.refused("finish", "out"))
        shutil.rmtree(self.out / ".tcast")
        self.assertIn("no plan", self.refused("finish", "out"))
        self.assertIn("no plan", self.refused("run-shard", "out"))

    def test_the_state_removed_meanwhile(self):
        """A run whose state is gone fails; it never ends in success without all of its files."""
        source = checkpoints.write_many(self.folder / "in")
        wanted = self.converted(source)
        for _ in range(4):
            shutil.rmtree(self.out, ignore_errors=True)
            process = subprocess.Popen([running.TCAST, "convert", source, "-o", "out", "--to", "bf16"], cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while process.poll() is None and not (self.out / ".tcast/identity").exists():
                time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            shutil.rmtree(self.out / ".tcast", ignore_errors=True)
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=60)
            if process.returncode == 0:
                self.assertEqual(self.tree(self.out), wanted)

    def test_links_in_the_place_of_state(self):
        source = self.source()
        other = self.folder / "other"
        for name in ("shards", "files", "done"):
            (other / name).mkdir(parents=True)
            (other / name / "mine").write_text("kept")
        (other / "identity").write_text("kept")
        before = self.tree(other)
        self.out.mkdir()
        (self.out / ".tcast").symlink_to("../other")
        for command in (["convert", source, "-o", "out", "--to", "bf16"], ["convert", source, "-o", "out", "--to", "bf16", "--force"],
                        ["plan", source, "-o", "out", "--to", "bf16", "--force"], ["run-shard", "out"], ["finish", "out"]):
            self.refused(*command)
        (self.out / ".tcast").unlink()
        (self.out / ".tcast").mkdir()
        (self.out / ".tcast/shards").symlink_to("../../other/shards")
        self.refused("convert", source, "-o", "out", "--to", "bf16", "--force")
        self.assertEqual(self.tree(other), before)
        shutil.rmtree(self.out)
        self.done("plan", source, "-o", "out", "--to", "bf16")
        self.staged(checkpoint_test.FIRST).symlink_to(other / "identity")
        self.done("run-shard", "out")
        self.done("finish", "out")
        self.assertEqual(self.tree(other), before)
        self.assertEqual(self.tree(self.out), self.converted(source))

    def test_a_folder_of_somebody_else_for_the_state(self):
        source = self.source()
        for state in (".tcast", ".tcast-finished.tmp"):
            shutil.rmtree(self.out, ignore_errors=True)
            (self.out / state).mkdir(parents=True)
            (self.out / state / "mine").write_text("kept")
            for options in ([], ["--force"], ["--dry-run"]):
                self.assertIn("not part of the state", self.refused("convert", source, "-o", "out", "--to", "bf16", *options))
                self.assertEqual(self.tree(self.out), {f"{state}/mine": b"kept"})

    def test_pipes_in_the_input(self):
        source = self.source()
        os.mkfifo(source / "pipe")
        message = self.refused("convert", source, "-o", "out", "--to", "bf16")
        self.assertIn("pipes, sockets and devices are not copied", message)
        self.assertIn("--skip-files leaves it out", message)
        self.assertFalse(self.out.exists())
        self.done("convert", source, "-o", "out", "--to", "bf16", "--skip-files", "pipe")


class CrashTest(ShardsTest):
    def kill_and_resume(self, command, source, delay):
        process = subprocess.Popen([running.TCAST, *command], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
        visible = os.listdir(self.out) if self.out.exists() else []
        if process.returncode == -signal.SIGKILL and "SHA256SUMS" not in visible and ".tcast" in visible:
            self.assertNotIn("config.json", visible)

    def test_kill_at_random_moments(self):
        """The same command again gives the same bytes, wherever the first one was killed."""
        source = checkpoints.write_many(self.folder / "in")
        start = time.monotonic()
        wanted = self.converted(source)
        seconds = time.monotonic() - start
        moments = random.Random(running.given.seed)
        for kill in range(running.given.kills):
            shutil.rmtree(self.out, ignore_errors=True)
            command = ["convert", str(source), "-o", "out", "--to", "bf16"]
            delay = moments.uniform(0, seconds)
            with self.subTest(seed=running.given.seed, kill=kill, delay=delay):
                self.kill_and_resume(command, source, delay)
                done = self.tcast(*command)
                if done.returncode == 1:  # the first one had completed it
                    self.assertIn("exists already", done.stderr)
                self.assertEqual(self.tree(self.out), wanted)

    def move_by_hand(self, wanted, moved, old=()):
        """Makes the state that a crash leaves behind the moves of some files."""
        hidden = self.out / ".tcast"
        identity = (hidden / "identity").read_text().strip()
        moves = []
        for name, content in wanted.items():
            shard = name.endswith(".safetensors")
            staged = self.staged(name) if shard else hidden / "files" / identity[:16] / name
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(content)
            moves.append({"from": str(staged.relative_to(self.out)), "file": name, "bytes": len(content),
                          "sha256": hashlib.sha256(content).hexdigest()})
        (hidden / "moving.json").write_text(json.dumps(
            {"format": "tensorcast moves", "version": 1, "identity": identity, "moves": moves, "old": list(old)}))
        for move in moves:
            if move["file"] in moved:
                (self.out / move["from"]).rename(self.out / move["file"])
        return moves

    def test_every_step_of_finishing_may_run_twice(self):
        """A crash between two renames: some files have their places, the rest have not."""
        source = self.source()
        wanted = self.converted(source)
        names = [name for name in wanted if name.endswith(".safetensors")] + ["config.json"]
        for moved in range(len(names) + 1):
            shutil.rmtree(self.out, ignore_errors=True)
            self.done("plan", source, "-o", "out", "--to", "bf16")
            self.done("run-shard", "out")
            self.move_by_hand(wanted, names[:moved])
            self.done(*(["finish", "out"] if moved % 2 else ["convert", source, "-o", "out", "--to", "bf16"]))
            self.assertEqual(self.tree(self.out), wanted)

    def test_moved_already_means_its_size_and_hash(self):
        source = self.source()
        wanted = self.converted(source)
        names = [name for name in wanted if name.endswith(".safetensors")]
        for content in (None, b"other", bytes(len(wanted[names[0]]))):
            shutil.rmtree(self.out, ignore_errors=True)
            self.done("plan", source, "-o", "out", "--to", "bf16")
            self.done("run-shard", "out")
            self.move_by_hand(wanted, names)
            if content is None:
                (self.out / names[0]).unlink()
            else:
                (self.out / names[0]).write_bytes(content)
            for command in (["finish", "out"], ["convert", source, "-o", "out", "--to", "bf16"]):
                self.assertIn("has disappeared or was changed", self.refused(*command))

    def test_a_folder_between_moves_is_not_read(self):
        source = self.source()
        wanted = self.converted(source)
        self.done("plan", source, "-o", "out", "--to", "bf16")
        self.done("run-shard", "out")
        self.move_by_hand(wanted, list(wanted)[:2])
        for command in (["convert", "out", "-o", "new", "--to", "f32"], ["verify", "out"], ["inspect", "out"]):
            self.assertIn("the folder is not complete", self.refused(*command))
        compared = self.tcast("diff", source, "out")
        self.assertEqual(compared.returncode, 2)
        self.assertIn("the folder is not complete", compared.stderr)
        self.done("finish", "out")
        self.done("verify", "out")

    def test_old_files_stay_if_a_new_one_is_damaged(self):
        source = self.source()
        self.done("convert", source, "-o", "out", "--to", "f16")
        old = self.tree(self.out)
        written = json.loads((self.out / checkpoint_test.RECORD).read_text())["files"]
        wanted = self.converted(source)
        self.done("plan", source, "-o", "out", "--to", "bf16", "--force")
        self.done("run-shard", "out")
        moves = self.move_by_hand(wanted, [], written)
        move = next(move for move in moves if move["file"].endswith(".safetensors"))
        staged = self.out / move["from"]
        for spoil in (lambda: staged.write_bytes(b"short"), staged.unlink, lambda: staged.symlink_to("/etc/hostname")):
            spoil()
            self.refused("finish", "out")
            self.assertEqual({name: content for name, content in self.tree(self.out).items() if not name.startswith(".tcast")}, old)
        staged.unlink()
        staged.write_bytes(wanted[move["file"]])
        self.done("finish", "out")
        self.assertEqual(self.tree(self.out), wanted)

    def test_another_conversion_completes_the_moves_first(self):
        source = self.source()
        wanted = self.converted(source)
        for options in ([], ["--force"]):
            shutil.rmtree(self.out, ignore_errors=True)
            self.done("plan", source, "-o", "out", "--to", "bf16")
            self.done("run-shard", "out")
            self.move_by_hand(wanted, list(wanted)[:2])
            if options:
                self.done("convert", source, "-o", "out", "--to", "f16", *options)
                self.done("convert", source, "-o", "half", "--to", "f16")
                self.assertEqual(self.tree(self.out), self.tree(self.folder / "half"))
            else:
                self.assertIn("exists already", self.refused("convert", source, "-o", "out", "--to", "f16"))
                self.assertEqual(self.tree(self.out), wanted)

    def test_a_crash_while_the_state_is_removed(self):
        source = self.source()
        wanted = self.converted(source)
        for command in (["finish", "whole"], ["convert", source, "-o", "whole", "--to", "bf16"]):
            rest = self.folder / "whole/.tcast-finished.tmp/shards"
            rest.mkdir(parents=True)
            (rest / "one.json").write_text("{}")
            said = self.refused(*command)
            if command[0] == "convert":
                self.assertRegex(said, "exists already: a conversion into it was completed\n.*name another output, or --force")
            self.assertEqual(self.tree(self.folder / "whole"), wanted)

    def test_going_on_says_so(self):
        source = self.source()
        self.done("plan", source, "-o", "out", "--to", "bf16")
        self.done("run-shard", "out", "0")
        outcome = json.loads(self.done("convert", source, "-o", "out", "--to", "bf16", "--json"))
        self.assertTrue(outcome["resumed"])
        self.assertEqual([shard["done_before"] for shard in outcome["shards"]], [True, False])
        self.assertTrue(all("report" in tensor for tensor in outcome["tensors"] if tensor["to"] == "bfloat16"))

    def test_two_processes_at_once(self):
        source = checkpoints.write_many(self.folder / "in")
        wanted = self.converted(source)
        self.done("plan", source, "-o", "out", "--to", "bf16")
        runs = [subprocess.Popen([running.TCAST, "run-shard", "out"], cwd=self.folder, stdout=subprocess.DEVNULL) for _ in range(2)]
        self.assertEqual([run.wait(60) for run in runs], [0, 0])
        ends = [subprocess.Popen([running.TCAST, "finish", "out"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE) for _ in range(2)]
        texts = [end.communicate(timeout=60)[1] for end in ends]
        self.assertIn(0, [end.returncode for end in ends], texts)
        self.assertEqual(self.tree(self.out), wanted)
        shutil.rmtree(self.out)
        runs = [subprocess.Popen([running.TCAST, "convert", source, "-o", "out", "--to", "bf16"], cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
        texts = [run.communicate(timeout=60)[1] for run in runs]
        self.assertIn(0, [run.returncode for run in runs], texts)
        self.assertEqual(self.tree(self.out), wanted)

    def test_a_full_disk(self):
        """A limit on the size of files stands for a full disk: the second shard does not fit, and nothing is visible."""
        shards = {"model-00001-of-00002.safetensors": [checkpoints.tensor("a.weight", [10], 1)],
                  "model-00002-of-00002.safetensors": [checkpoints.tensor("b.weight", [40000], 2)]}
        source = checkpoints.write_sharded(self.folder / "in", shards)
        wanted = self.converted(source)
        limited = subprocess.run(["bash", "-c", 'ulimit -f 30; exec "$0" "$@"', running.TCAST, "convert", source, "-o", "out", "--to",
                                  "bf16"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(limited.returncode, 1, limited.stderr)
        self.assertIn("model-00002-of-00002.safetensors", limited.stderr)
        self.assertEqual(sorted(os.listdir(self.out)), [".tcast"])
        text = self.done("convert", source, "-o", "out", "--to", "bf16")
        self.assertIn("1 of 2 shards had been converted by an earlier run", text)
        self.assertEqual(self.tree(self.out), wanted)

    def test_a_disk_that_fills_up_meanwhile(self):
        """A real file system without space; needs the right to mount one."""
        source = checkpoints.write_many(self.folder / "in", shards=3, elements=100000)
        wanted = self.converted(source)
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no right to mount a file system")
        try:
            self.done("plan", source, "-o", "disk/out", "--to", "bf16")
            self.done("run-shard", "disk/out", "0")
            (disk / "filler").write_bytes(bytes(1500000))
            self.assertIn("No space left", self.refused("run-shard", "disk/out"))
            self.assertIn("the disk has", self.refused("convert", source, "-o", "disk/out", "--to", "bf16"))
            for name, content in self.tree(disk / "out/.tcast/shards").items():  # complete, or absent
                self.assertTrue(name.endswith(".json") or content in wanted.values())
            (disk / "filler").unlink()
            self.assertIn("done before", self.done("run-shard", "disk/out"))
            self.done("finish", "disk/out")
            self.assertEqual(self.tree(disk / "out"), wanted)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_ctrl_c_can_be_resumed(self):
        source = checkpoints.write_many(self.folder / "in")
        wanted = self.converted(source)
        command = [running.TCAST, "convert", source, "-o", "out", "--to", "bf16"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not (self.out / ".tcast/identity").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=60)[1]
        if process.returncode == 130:
            self.assertIn("interrupted", message)
            self.done(*map(str, command[1:]))
        self.assertEqual(self.tree(self.out), wanted)


if __name__ == "__main__":
    # The cases of checkpoint_test run on their own.
    running.main(__doc__, [("--kills", {"type": int, "default": 4, "help": "how many conversions are killed"}),
                           ("--seed", {"type": int, "default": 16})])
