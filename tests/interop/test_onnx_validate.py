# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx convert --validate` with stand-ins for Python: what is run, and what is left behind.

python/tests/test_onnx_validate.py runs the real package.
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper
from peak_memory import wait_and_measure

TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[N,8] x) => (float[N,8] y) { y = MatMul(x, w) }'
ANSWER = json.dumps({"outputs": [{"name": "y\x1b[2J", "max_abs_error": 0.25, "max_rel_error": 0.5, "cosine": None}]})
# The first run looks for packages, the second compares; sys.argv is as in `python -c CODE ...`.
STAND_IN = f"""#!{sys.executable}
import json, os, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
with open(here / "runs", "a") as file:
    file.write(json.dumps(sys.argv[3:]) + "\\n")
if len(sys.argv) > 3:
    made = pathlib.Path(sys.argv[5])
"""


@pytest.fixture
def model(tmp_path):
    made = onnx.parser.parse_model(TEXT)
    weights = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)
    made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    folder = tmp_path / "models"
    folder.mkdir()
    onnx.save(made, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    return folder


@pytest.fixture
def stand_in(tmp_path):
    """stand_in("print(1)") gives an environment whose Python finds its packages, and runs this to compare."""
    def made(script, finds=True):
        path = tmp_path / "stand-in"
        path.write_text(STAND_IN + "".join(f"    {line}\n" for line in script.splitlines())
                        + ("" if finds else "else:\n    sys.exit('x\\nModuleNotFoundError: No module named onnx')\n"))
        path.chmod(0o755)
        return {**os.environ, "TCAST_PYTHON": str(path)}
    return made


def names(folder):
    return sorted(path.name for path in folder.iterdir())


CONVERT = ["onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--validate"]


def test_what_is_run(run_tcast, model, stand_in, tmp_path):
    look = ("assert sorted(p.name for p in made.parent.iterdir()) == ['o.onnx', 'o.onnx.data'], list(made.parent.iterdir())\n"
            "assert [made.stat().st_nlink, made.parent.stat().st_mode & 0o777] == [1, 0o700]\n"
            f"print({ANSWER!r})")
    more = ["--inputs", "-x.npz", "--dims", "N=3", "--seed", "7", "--rtol", "0.5", "--atol", "1", "--cosine", "-1"]
    (model / "-x.npz").write_bytes(b"")
    done = run_tcast(*CONVERT, *more, cwd=model, env=stand_in(look))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == r"  y\x1B[2J: error 0.25, relative 0.5, cosine ?"
    first, second = map(json.loads, (tmp_path / "runs").read_text().splitlines())
    assert first == []
    staged = second.pop(2)
    assert second == ["validate", str(model / "m.onnx"), "--to=float16", "--json", "--inputs=-x.npz", "--dims=N=3", "--seed=7",
                      "--rtol=0.5", "--atol=1", "--cosine=-1"]
    assert os.path.dirname(os.path.dirname(staged)) == str(model) and os.path.basename(staged) == "o.onnx"
    assert names(model) == ["-x.npz", "m.onnx", "o.onnx", "o.onnx.data", "w.bin"]
    assert numpy_helper.to_array(onnx.load(model / "o.onnx").graph.initializer[0]).dtype == np.float16


@pytest.mark.parametrize("scheme, to", [("int8", "int8"), ("float8", "float8_e4m3fn"), ("int4-group", "int4")])
def test_the_type_of_a_scheme(run_tcast, model, stand_in, tmp_path, scheme, to):
    more = ["--weights-only", scheme, "--opset", "auto", "--validate"]
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", *more, cwd=model, env=stand_in(f"print({ANSWER!r})"))
    assert done.returncode == 0, done.stderr
    assert f"--to={to}" in json.loads((tmp_path / "runs").read_text().splitlines()[1])


def test_json_and_quiet(run_tcast, model, stand_in):
    environment = stand_in(f"print({ANSWER!r})")
    said = json.loads(run_tcast(*CONVERT, "--json", cwd=model, env=environment).stdout)
    assert said["validated"] is True and said["outputs"][0]["max_abs_error"] == 0.25
    assert "validated" not in json.loads(run_tcast(*CONVERT[:-1], "--json", "--force", cwd=model).stdout)
    assert run_tcast(*CONVERT, "--quiet", "--force", cwd=model, env=environment).stdout == ""


@pytest.mark.parametrize("script, words", [
    ("sys.exit('noise\\ntensorcast: error: it differs\\n  by 1')", "m.onnx: it differs by 1\n"),
    ("sys.exit('Traceback\\nMemoryError')", "m.onnx: MemoryError\n"),
    ("sys.exit(3)", "ended with status 3"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "ended with status 137"),
    ("print('{}')", "is not understood"),
    ("print('[1]')", "is not understood"),
    ("print(json.dumps(dict(outputs=3)))", "is not understood"),
    ("print(json.dumps(dict(outputs=[dict(name='y'), 1])))", "is not understood"),
    ("print(json.dumps(dict(outputs=[dict(name=2)])))", "is not understood"),
])
def test_a_failure_leaves_what_was_there(run_tcast, model, stand_in, script, words):
    environment = stand_in(script)
    before = names(model)
    done = run_tcast(*CONVERT, cwd=model, env=environment)
    assert done.returncode == 1 and words in done.stderr and done.stdout == ""
    assert names(model) == before
    for name in ("o.onnx", "o.onnx.data"):
        (model / name).write_text("old " + name)
    (model / "elsewhere").mkdir()
    for target in ("o.onnx", "elsewhere/o.onnx"):
        done = run_tcast(*CONVERT[:4], target, *CONVERT[5:], "--force", cwd=model, env=environment)
        assert done.returncode == 1
    assert names(model) == sorted([*before, "elsewhere", "o.onnx", "o.onnx.data"]) and names(model / "elsewhere") == []
    assert [(model / name).read_text() for name in ("o.onnx", "o.onnx.data")] == ["old o.onnx", "old o.onnx.data"]


def test_without_python_or_its_packages(run_tcast, model, stand_in, tmp_path):
    """The error comes before the work: the model that is named does not even exist."""
    command = [*CONVERT[:2], "missing.onnx", *CONVERT[3:]]
    (tmp_path / "empty").mkdir()
    no_python = {key: value for key, value in os.environ.items() if key != "TCAST_PYTHON"}
    for environment, words in (({"TCAST_PYTHON": "/nonexistent"}, "there is no program /nonexistent"),
                               ({**no_python, "PATH": str(tmp_path / "empty")}, "there is no program python3"),
                               ({"TCAST_PYTHON": "/dev/null"}, "there is no program /dev/null"),
                               ({"TCAST_PYTHON": str(model / "m.onnx")}, "there is no program"),
                               (stand_in("", finds=False), "lacks: ModuleNotFoundError: No module named onnx")):
        done = run_tcast(*command, cwd=model, env=environment)
        assert done.returncode == 1 and words in done.stderr, done.stderr
        assert "pip install tensorcast[validate]" in done.stderr and "TCAST_PYTHON" in done.stderr
    assert names(model) == ["m.onnx", "w.bin"]


def test_a_program_of_path(run_tcast, model, stand_in, tmp_path):
    environment = stand_in(f"print({ANSWER!r})")
    (tmp_path / "bin").mkdir()
    (tmp_path / "stand-in").rename(tmp_path / "bin/python3")
    environment = {**environment, "PATH": f"/nonexistent:{tmp_path / 'bin'}:{os.environ['PATH']}", "TCAST_PYTHON": ""}
    assert run_tcast(*CONVERT, cwd=model, env=environment).returncode == 0
    (model / "python3").symlink_to("/bin/false")  # not of PATH
    environment["TCAST_PYTHON"] = "python3"
    assert run_tcast(*CONVERT, "--force", cwd=model, env=environment).returncode == 0


def test_mistakes_of_the_command_line(run_tcast, model, stand_in):
    environment = stand_in("sys.exit(9)")
    for more, status, words in (
        (["--dims", "N"], 2, '"N" is not a list of lengths'),
        (["--dims", "=3"], 2, "not a list of lengths"),
        (["--cosine", "2"], 2, "--cosine"),
        (["--rtol", "-1"], 2, "--rtol"),
        (["--seed", "-1"], 2, "--seed"),
        (["--inputs", "none.npz"], 1, "none.npz: cannot open the inputs"),
    ):
        done = run_tcast(*CONVERT, *more, cwd=model, env=environment)
        assert done.returncode == status and words in done.stderr, done.stderr
    done = run_tcast(*CONVERT[:-1], "--rtol", "1", cwd=model)
    assert done.returncode == 2 and "--validate" in done.stderr
    assert names(model) == ["m.onnx", "w.bin"]


def test_a_file_in_the_way_is_an_error_before_python_compares(run_tcast, model, stand_in, tmp_path):
    environment = stand_in(f"print({ANSWER!r})")
    (model / "o.onnx").write_text("theirs")
    done = run_tcast(*CONVERT, cwd=model, env=environment)
    assert done.returncode == 1 and "o.onnx: the file exists already" in done.stderr
    assert names(model) == ["m.onnx", "o.onnx", "w.bin"] and (model / "o.onnx").read_text() == "theirs"
    assert '"validate"' not in (tmp_path / "runs").read_text()


def test_a_file_that_appears_meanwhile_stays(run_tcast, model, stand_in):
    for name in ("o.onnx", "o.onnx.data"):
        environment = stand_in(f"(made.parent.parent / {name!r}).write_text('theirs')\nprint({ANSWER!r})")
        done = run_tcast(*CONVERT, cwd=model, env=environment)
        assert done.returncode == 1 and f"{name}: the file exists already" in done.stderr
        assert names(model) == sorted(["m.onnx", "w.bin", name]) and (model / name).read_text() == "theirs"
        (model / name).unlink()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing_and_end_python(tcast, model, stand_in, tmp_path, number):
    environment = stand_in("(here / 'pid').write_text(str(os.getpid()))\nos.rename(here / 'pid', here / 'ready')\ntime.sleep(60)")
    process = subprocess.Popen([tcast, *CONVERT], cwd=model, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ready = tmp_path / "ready"
    until = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + number and "interrupted; nothing was written" in said
    assert names(model) == ["m.onnx", "w.bin"]
    assert not os.path.exists(f"/proc/{int(ready.read_text())}")


def test_what_a_killed_command_left_goes_with_the_next(run_tcast, model, stand_in):
    environment = stand_in("os.kill(os.getppid(), signal.SIGKILL)")
    assert run_tcast(*CONVERT, cwd=model, env=environment).returncode == -signal.SIGKILL
    assert names(model) == [".o.onnx.tcast-0.tmp", "m.onnx", "w.bin"]
    assert run_tcast(*CONVERT[:-1], cwd=model).returncode == 0
    assert names(model) == ["m.onnx", "o.onnx", "o.onnx.data", "w.bin"]


def test_dry_runs(run_tcast, model, stand_in, tmp_path):
    script = f"(here / 'place').write_text(str(made.parent)); assert made.exists(); print({ANSWER!r})"
    (tmp_path / "temporary").mkdir()
    environment = {**stand_in(script), "TMPDIR": str(tmp_path / "temporary")}
    for target, place in (((), tmp_path / "temporary"), (("-o", "o.onnx"), model)):
        done = run_tcast(*CONVERT[:3], *target, *CONVERT[5:], "--dry-run", cwd=model, env=environment)
        assert done.returncode == 0 and "error 0.25" in done.stdout, done.stderr
        staged = (tmp_path / "place").read_text()
        assert os.path.dirname(staged) == str(place) and not os.path.exists(staged)
        assert names(model) == ["m.onnx", "w.bin"] and names(tmp_path / "temporary") == []
    done = run_tcast(*CONVERT[:3], *CONVERT[5:], "--dry-run", cwd=model, env=stand_in("sys.exit('no')"))
    assert done.returncode == 1 and names(model) == ["m.onnx", "w.bin"]


def test_memory_does_not_follow_the_model(tcast, model, stand_in):
    """The conversion itself takes no more memory with --validate: 512 MiB of weights, in 32 tensors."""
    path = model / "big.bin"
    with open(path, "wb") as file:
        file.truncate(512 << 20)
    big = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[2048] x) => (float[2048] y) { y = Neg(x) }')
    for i in range(32):
        tensor = big.graph.initializer.add(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[2048, 2048], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "big.bin"), ("offset", str(i << 24)), ("length", str(1 << 24))):
            tensor.external_data.add(key=key, value=value)
    (model / "m.onnx").write_bytes(big.SerializeToString())
    command = [tcast, *CONVERT[:-1], "--validate", "--weights-only"]
    process = subprocess.Popen(command, cwd=model, env=stand_in(f"print({ANSWER!r})"), stdin=subprocess.DEVNULL)
    peak = wait_and_measure(process)
    assert process.returncode == 0 and (model / "o.onnx.data").stat().st_size >= 256 << 20
    assert peak < 150 << 20
