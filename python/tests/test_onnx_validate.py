# SPDX-License-Identifier: Apache-2.0
"""Validation of converted models: `tcast onnx convert --validate`, `python -m tensorcast.onnx validate`, in Python.

tests/interop/test_onnx_validate.py has what becomes of files and signals, with stand-ins for Python.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest

import tensorcast as tc

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import numpy_helper  # noqa: E402

from tensorcast.onnx import _convert, _validate, auto_mixed_precision  # noqa: E402

WEIGHTS = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)
X = np.random.default_rng(5).normal(size=(2, 8)).astype(np.float32)


def parse(text, **initializers):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers.items())
    return model


def good():
    return parse("g (float[N,8] x) => (float[N,8] y) { m = MatMul(x, w)  r = Relu(m)  y = Softmax(r) }", w=WEIGHTS)


def ill():
    """float16 has no 2049."""
    return parse(
        "g (float[2,8] x) => (float[2,8] y) { a = MatMul(x, w)  c = Add(a, odd)  d = Sub(c, even)  y = MatMul(d, w) }",
        w=WEIGHTS, odd=np.float32([2049]), even=np.float32([2048]),
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name, model in (("good", good()), ("ill", ill())):
        onnx.save(model, tmp_path / f"in/{name}.onnx", save_as_external_data=True, location=f"{name}.bin", size_threshold=0)
    np.savez(tmp_path / "in/x.npz", x=X)
    (tmp_path / "out").mkdir()
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def python(folder, *arguments, **environment):
    words = [sys.executable, "-m", *map(str, arguments)]
    environment = {**{key: value for key, value in os.environ.items() if key != "TCAST_PYTHON"}, **environment}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def tcast(folder, *arguments, **environment):
    return python(folder, "tensorcast", "onnx", "convert", *arguments, "--to", "float16", "--validate", **environment)


def test_the_command_that_the_package_has_uses_its_own_python(folder):
    done = tcast(folder, "in/good.onnx", "-o", "out/o.onnx", "--json", PATH="/nonexistent")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    same = tc.onnx.convert(folder / "in/good.onnx", to="float16", dry_run=True, validate=True)
    assert said["validated"] is same.validated is True
    assert said["outputs"] == [output.as_dict() for output in same.outputs] and said["outputs"][0]["passed"] is True
    assert names(folder / "out") == ["o.onnx", "o.onnx.data"]
    onnx.checker.check_model(str(folder / "out/o.onnx"), full_check=True)
    done = tcast(folder, "in/good.onnx", "-o", "out/p.onnx", TCAST_PYTHON="/nonexistent")  # the user's word counts
    assert done.returncode == 1 and "there is no program /nonexistent" in done.stderr


def test_text_and_inputs(folder):
    done = tcast(folder, "in/good.onnx", "-o", "out/o.onnx", "--inputs", "in/x.npz", "--external-data", "per-tensor")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("  y: error ") and ", cosine " in done.stdout
    done = tcast(folder, "in/good.onnx", "-o", "out/p.onnx", "--dims", "N=5", "--rtol", "1e-9", "--atol", "0")
    assert done.returncode == 1 and "allowed are rtol 1e-09, atol 0, cosine 0.99" in done.stderr
    np.savez(folder / "in/z.npz", z=X)
    done = tcast(folder, "in/good.onnx", "-o", "out/p.onnx", "--inputs", "in/z.npz")
    assert done.returncode == 1 and "the model has no input 'z'" in done.stderr
    (folder / "in/no.npz").write_text("no npz")
    done = tcast(folder, "in/good.onnx", "-o", "out/p.onnx", "--inputs", "in/no.npz")
    assert done.returncode == 1 and "tcast: error: " in done.stderr and "Traceback" not in done.stderr
    assert not [name for name in names(folder / "out") if not name.startswith("o.onnx")]


def test_a_model_that_differs_leaves_nothing(folder):
    before = names(folder / "in")
    done = tcast(folder, "in/ill.onnx", "-o", "out/o.onnx")
    assert done.returncode == 1 and "in/ill.onnx: the output 'y' differs" in done.stderr
    assert "nothing was written" in done.stderr
    done = tcast(folder, "in/ill.onnx", "-o", "in/ill.onnx", "--force")
    assert done.returncode == 1 and names(folder / "in") == before and names(folder / "out") == []
    for name in ("o.onnx", "o.onnx.data"):
        (folder / "out" / name).write_text("old")
    assert tcast(folder, "in/ill.onnx", "-o", "out/o.onnx", "--force").returncode == 1
    assert [path.read_text() for path in (folder / "out").iterdir()] == ["old", "old"]
    done = tcast(folder, "in/ill.onnx", "-o", "out/o.onnx", "--force", "--keep-op", "Add", "--keep-op", "Sub")
    assert done.returncode == 0 and len(names(folder / "out")) == 3  # the data has another name: this one is not ours
    assert (folder / "out/o.onnx.data").read_text() == "old"


def test_packages_of_the_current_folder_are_not_imported(folder):
    for name in ("onnx", "onnxruntime", "numpy", "tensorcast"):
        (folder / f"{name}.py").write_text("import pathlib; pathlib.Path('seen').touch(); raise ImportError('not this one')")
    program = os.path.join(os.path.dirname(tc.__file__), "bin", "tcast")
    words = [program, "onnx", "convert", "in/good.onnx", "-o", "out/o.onnx", "--to", "float16", "--validate"]
    done = subprocess.run(words, cwd=folder, env={**os.environ, "TCAST_PYTHON": sys.executable}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (folder / "seen").exists()


def test_validate_in_python(folder):
    half = tc.onnx.convert(good(), to="float16").model
    (output,) = tc.onnx.validate(good(), half, "float16")
    assert output.passed and output.name == "y"
    checks = tc.onnx.Validation(inputs={"x": X}, rtol=1e-9, atol=0)
    with pytest.raises(tc.onnx.ValidationError, match="rtol 1e-09"):
        tc.onnx.validate(good().SerializeToString(), half.SerializeToString(), np.float16, checks)
    assert tc.onnx.validate(folder / "in/good.onnx", half, "float16", tc.onnx.Validation(run=False)) == ()
    broken = onnx.ModelProto.FromString(half.SerializeToString())
    broken.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    with pytest.raises(tc.onnx.ValidationError, match="the new model is invalid"):
        tc.onnx.validate(good(), broken, "float16")


def test_validate_as_a_command(folder):
    tc.onnx.convert(folder / "in/good.onnx", folder / "out/o.onnx", "float16")
    tc.onnx.convert(folder / "in/ill.onnx", folder / "out/i.onnx", "float16")
    words = ["tensorcast.onnx", "validate", "--to", "float16"]
    done = python(folder, *words, "in/good.onnx", "out/o.onnx")
    assert done.returncode == 0 and done.stdout.startswith("  y: error "), done.stderr
    done = python(folder, *words, "in/good.onnx", "out/o.onnx", "--inputs", "in/x.npz", "--json")
    said = json.loads(done.stdout)
    assert said["validated"] is True and said["outputs"][0]["cosine"] > 0.999
    done = python(folder, *words, "in/ill.onnx", "out/i.onnx", "--json")
    assert done.returncode == 1 and done.stdout == "" and "tensorcast: error: the output 'y' differs" in done.stderr
    done = python(folder, *words, "in/good.onnx", "out/none.onnx")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    done = python(folder, "tensorcast.onnx", "validate", "--help")
    assert all(word in done.stdout for word in ("examples:", "--dims", "an npz file", "tcast onnx convert --validate"))


def test_the_new_model_is_seen_under_its_name_beside_its_place(folder, monkeypatch):
    seen = []

    def look(source, made, to, checks):
        seen.extend((source, made, names(folder / "out")))
        return ()

    monkeypatch.setattr(_convert, "compare_models", look)
    result = tc.onnx.convert(folder / "in/good.onnx", folder / "out/o.onnx", "float16", validate=True)
    assert result.validated and result.outputs == ()
    source, made, during = seen
    assert source == str(folder / "in/good.onnx") and os.path.basename(made) == "o.onnx"
    assert during == [os.path.basename(os.path.dirname(made))] and names(folder / "out") == ["o.onnx", "o.onnx.data"]


def test_exceptions_of_the_check_pass_through(folder, monkeypatch):
    for problem in (KeyboardInterrupt(), MemoryError("no"), tc.onnx.ValidationError("no")):

        def fail(*given, problem=problem):
            raise problem

        monkeypatch.setattr(_convert, "compare_models", fail)
        with pytest.raises(type(problem)) as caught:
            tc.onnx.convert(folder / "in/good.onnx", folder / "out/o.onnx", "float16", validate=True)
        assert caught.value is problem
        assert names(folder / "out") == [] and names(folder) == ["in", "out"]


def test_a_file_that_appears_meanwhile_stays(folder, monkeypatch):
    def look(*given):
        (folder / "out/o.onnx").write_text("theirs")
        return ()

    monkeypatch.setattr(_convert, "compare_models", look)
    with pytest.raises(FileExistsError):
        tc.onnx.convert(folder / "in/good.onnx", folder / "out/o.onnx", "float16", validate=True)
    assert names(folder / "out") == ["o.onnx"] and (folder / "out/o.onnx").read_text() == "theirs"


def test_models_that_onnx_upgrades_are_compared_with_the_old_one(folder, monkeypatch):
    text = '<ir_version: 8, opset_import: ["" : 11]> g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=1>(x) }'
    onnx.save(onnx.parser.parse_model(text), folder / "in/old.onnx")
    made = tc.onnx.convert(folder / "in/old.onnx", folder / "out/o.onnx", "bfloat16", opset="auto", validate=True)
    assert made.outputs[0].passed and (made.opset_before, made.opset_after) == (11, 13)
    assert names(folder / "out") == ["o.onnx"] and names(folder) == ["in", "out"]


def overflowing():
    """Numbers beyond 65504 between small ones: outputs are close where a CPU computes in float32."""
    return parse(
        "g (float[8,4] x) => (float[8,4] y) { a = Mul(x, k)  b = Mul(a, a)  c = Mul(b, s)  y = Relu(c) }",
        k=np.float32([300]), s=np.float32([1e-5]),
    )  # fmt: skip


def test_values_beyond_the_range_of_float16(folder):
    with pytest.raises(tc.onnx.ValidationError, match=r"the value 'b', which Mul makes, is beyond the range of float16 in \d+ of 32"):
        tc.onnx.convert(overflowing(), to="float16", validate=True)
    tc.onnx.convert(overflowing(), to="float16", validate=tc.onnx.Validation(ranges=False))
    tc.onnx.convert(overflowing(), to="bfloat16", validate=True)
    x = np.full((8, 4), 0.5, np.float32)
    tc.onnx.convert(overflowing(), to="float16", validate=tc.onnx.Validation(inputs={"x": x}))  # of 22500
    onnx.save(overflowing(), folder / "in/large.onnx", save_as_external_data=True, location="large.bin", size_threshold=0)
    done = tcast(folder, "in/large.onnx", "-o", "out/o.onnx")
    assert done.returncode == 1 and "beyond the range of float16" in done.stderr and names(folder / "out") == []


def test_search_keeps_what_overflows():
    found = tc.onnx.search(overflowing(), to="float16", progress=None)
    made = {node.output[0]: node for node in found.result.model.graph.node}
    assert {"Mul_g_1", "Mul_g_2"} <= set(found.kept)  # a Cast between them would overflow
    assert "Mul_g_0" in found.converted and "b" in made
    accepted = auto_mixed_precision.auto_convert_mixed_precision(overflowing(), {"x": np.full((8, 4), 3, np.float32)}, rtol=0.1, atol=0.1)
    assert [node.op_type for node in accepted.graph.node] != ["Mul", "Mul", "Mul", "Relu"]


def test_masks_may_become_infinite():
    text = """g (float[2,4] x, float[2,4] m) => (float[2,4] y) {
        i = Sub(one, m)  b = Mul(i, low)  s = Add(x, b)  t = Add(s, b)  y = Softmax(t) }"""
    model = parse(text, one=np.float32([1]), low=np.float32([-3.4e38]))
    inputs = {"x": np.full((2, 4), -50, np.float32), "m": np.float32([[1, 1, 0, 0], [1, 0, 0, 0]])}
    tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=inputs))
    inputs["m"][1] = 0  # Softmax of -infinity alone is NaN
    with pytest.raises(tc.onnx.ValidationError, match="beyond the range|differs"):
        tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=inputs))


def test_values_in_bodies_are_said_to_be_unseen():
    text = """g (float[8,4] x, bool c) => (float[8,4] y) {
        y = If(c) <then_branch = t () => (float[8,4] p) { a = Mul(x, k)  b = Mul(a, a)  p = Mul(b, s) },
                   else_branch = e () => (float[8,4] q) { q = Relu(x) }> }"""
    model = parse(text, k=np.float32([300]), s=np.float32([1e-5]))
    inputs = {"x": np.full((8, 4), 1, np.float32), "c": np.bool_(True)}
    with pytest.warns(UserWarning, match="bodies of If were not compared"):
        tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=inputs, ranges=False))
        tc.onnx.convert(model, to="bfloat16", validate=tc.onnx.Validation(inputs=inputs))


def test_values_of_functions_are_looked_at():
    function = onnx.helper.make_function(
        "own", "Square", ["a"], ["c"],
        [onnx.helper.make_node("Mul", ["a", "a"], ["b"]), onnx.helper.make_node("Mul", ["b", "s"], ["c"])],
        [onnx.helper.make_opsetid("", 21)],
    )  # fmt: skip
    function.node.insert(0, onnx.helper.make_node("Constant", [], ["s"], value_float=1e-5))
    model = parse("g (float[8,4] x) => (float[8,4] y) { y = Relu(x) }")
    del model.graph.node[:]
    model.graph.node.extend([onnx.helper.make_node("Square", ["x"], ["z"], domain="own"), onnx.helper.make_node("Relu", ["z"], ["y"])])
    model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    inputs = {"x": np.full((8, 4), 400, np.float32)}
    with pytest.raises(tc.onnx.ValidationError, match="beyond the range"):
        tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=inputs))


def crashing():
    """ONNX Runtime 1.31.1 does not survive loading this: its NchwcTransformer reads a node without a schema."""
    model = parse("g (float16[a,b,8] x) => (float16[b,a,8] y) { t = Transpose <perm = [1, 0, 2]> (x)  y = MatMul(t, w) }")
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS.astype(np.float16), "w"))
    return model


def product():
    w = np.random.default_rng(7).normal(size=(64, 32)).astype(np.float32)
    return parse("g (float[2,64] x) => (float[2,32] y) { y = MatMul(x, w) }", w=w)


@pytest.mark.parametrize("scheme", ["int8", "float8", "int4-group"])
def test_weights_in_codes_are_compared_by_the_cosine(folder, scheme):
    onnx.save(product(), folder / "in/p.onnx")
    size = ["--group-size", "32"] if scheme == "int4-group" else []
    command = ["convert", "in/p.onnx", "--weights-only", scheme, *size, "--validate"]
    for module, place in (["tensorcast", "onnx"], "a.onnx"), (["tensorcast.onnx"], "b.onnx"):
        done = python(folder, *module, *command, "-o", f"out/{place}")
        assert done.returncode == 0 and "cosine 0.99" in done.stdout and "1 weight in " in done.stdout, done.stderr
    assert (folder / "out/a.onnx").read_bytes() == (folder / "out/b.onnx").read_bytes()
    done = python(folder, "tensorcast.onnx", *command, "-o", "out/c.onnx", "--cosine", "0.9999999")
    assert done.returncode == 1 and "allowed are rtol 1, atol 0, cosine 1" in done.stderr and not (folder / "out/c.onnx").exists()


def test_weights_that_stay_are_named(folder):
    onnx.save(product(), folder / "in/p.onnx")
    done = python(folder, "tensorcast.onnx", "convert", "in/p.onnx", "-o", "out/o.onnx", "--weights-only", "int4-group")
    assert "1 weight stays, such as 'w': it has fewer inputs than share a scale" in done.stdout


def test_inputs_of_files(folder):
    source = good()
    for given in (folder / "in/x.npz", str(folder / "in/x.npz"), [folder / "in/x.npz", {"x": X}]):
        assert tc.onnx.convert(source, to="float16", validate=tc.onnx.Validation(inputs=given)).validated
    np.save(folder / "in/x.npy", X)
    with pytest.raises(tc.CastError, match="is no npz file"):
        tc.onnx.convert(source, to="float16", validate=tc.onnx.Validation(inputs=folder / "in/x.npy"))
    with pytest.raises(TypeError, match="a set of inputs is a mapping"):
        tc.onnx.convert(source, to="float16", validate=tc.onnx.Validation(inputs=[5]))


def test_a_crash_of_the_runtime_is_a_result(folder):
    """A stand-in for a crash: whether a model crashes the runtime depends on the processor."""
    onnx.save(good(), folder / "in/old.onnx")
    before = names(folder)
    stand_in = folder / "sitecustomize.py"
    stand_in.write_text(CRASH)
    done = python(folder, "tensorcast.onnx", "convert", "in/old.onnx", "-o", "out/o.onnx", "--to", "float16", "--validate", PYTHONPATH=str(folder))
    assert done.returncode == 1 and "the new model does not run: ONNX Runtime crashed (SIGSEGV) while it loaded the model" in done.stderr
    assert names(folder / "out") == [] and names(folder) == [*before, "sitecustomize.py"]
    done = python(folder, "tensorcast.onnx", "search", "in/old.onnx", "-o", "out/o.onnx", "--to", "float16", "--json", PYTHONPATH=str(folder))
    assert done.returncode == 0 and len(json.loads(done.stdout)["kept"]) > 0, done.stderr  # a crash is an attempt that fails
    assert names(folder / "out") == ["o.onnx"]


CRASH = """
import builtins, os, signal
plain_import = builtins.__import__
def hooked(name, *given, **options):
    module = plain_import(name, *given, **options)
    if name == "onnxruntime" and hasattr(module, "InferenceSession") and not hasattr(module, "hooked"):
        module.hooked = real = module.InferenceSession
        def session(model, *given, **options):
            opened = real(model, *given, **options)
            if any("float16" in value.type for value in opened.get_inputs()):
                os.kill(os.getpid(), signal.SIGSEGV)
            return opened
        module.InferenceSession = session
    return module
builtins.__import__ = hooked
"""


def test_models_that_crash_the_runtime_are_made_in_another_form():
    from tensorcast.onnx._runtime_process import RuntimeProblem, RuntimeProcess

    text = "g (float[a,b,8] x) => (float[b,a,8] y) { t = Transpose <perm = [1, 0, 2]> (x)  y = MatMul(t, w) }"
    made = tc.onnx.convert(parse(text, w=WEIGHTS), to="float16", validate=True)  # which runs it
    assert [node.op_type for node in made.model.graph.node] == ["Cast", "Transpose", "Cast", "MatMul"]
    made = tc.onnx.convert(parse(text, w=WEIGHTS), to="bfloat16", validate=True)
    assert [node.op_type for node in made.model.graph.node] == ["Cast", "Cast", "Transpose", "MatMul", "Cast"]
    # Where this fails, ONNX Runtime has mended it, or the processor has no such kernels.
    with RuntimeProcess() as runtime, tempfile.TemporaryDirectory() as folder:
        onnx.save(crashing(), f"{folder}/m.onnx")
        try:
            runtime.load(f"{folder}/m.onnx")
        except RuntimeProblem as problem:
            assert "crashed (SIGSEGV) while it loaded the model" in str(problem)
        onnx.save(good(), f"{folder}/m.onnx")
        runtime.load(f"{folder}/m.onnx")  # starts again
        assert runtime.run({"x": X})[0].shape == (2, 8)


def test_numbers_beyond_the_range_of_outputs_are_infinite():
    old, new = [np.float32([1e6, -1e6, 2])], [np.float16([np.inf, -np.inf, 2])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _validate.compare("y", old, new, 0.02, 0.02, 0.99).passed
        assert not _validate.compare("y", old, [-new[0]], 0.02, 0.02, 0.99).passed


def test_outputs_that_say_nothing_are_no_validation(folder):
    """All zeros and all NaN were called equal, with cosine 1."""
    zero = parse("g (float[2,8] x) => (float[2,8] y) { n = Neg(x)  a = Relu(x)  b = Relu(n)  y = Mul(a, b) }")
    nan = parse("g (float[2,8] x) => (float[2,8] y) { a = Mul(x, x)  n = Neg(a)  y = Log(n) }")
    for model in (zero, nan):
        with pytest.raises(tc.onnx.ValidationError, match="nothing can be compared; give inputs of real data with --inputs"):
            tc.onnx.convert(model, to="float16", validate=True)
    with pytest.raises(tc.onnx.ValidationError, match="for these inputs all outputs"):
        tc.onnx.convert(good(), to="float16", validate=tc.onnx.Validation(inputs={"x": np.full((2, 8), np.nan, np.float32)}))
    onnx.save(zero, folder / "in/zero.onnx")
    done = tcast(folder, "in/zero.onnx", "-o", "out/o.onnx")
    assert done.returncode == 1 and "--inputs" in done.stderr and names(folder / "out") == []


def test_masks_of_random_inputs_are_1():
    model = parse("""g (float[2,8] x, int64[2,8] attention_mask, bool[2,8] Mask) => (float[2,8] y) {
        m = Cast<to = 1>(attention_mask)  n = Cast<to = 1>(Mask)  p = Mul(m, n)  q = Sub(one, p)  y = Sub(x, q) }""",
                  one=np.float32([1]))  # fmt: skip
    (output,) = tc.onnx.convert(model, to="float16", validate=True).outputs
    assert output.passed
    seen = []
    tc.onnx.search(model, metric=lambda old, new: seen.append(np.abs(old[0]).max()) or True, progress=None)
    x = np.random.default_rng(0).normal(size=(2, 8))
    assert abs(seen[0] - np.abs(x).max()) < 1e-6  # not x - 1


def test_several_sets_of_inputs_must_all_pass(folder):
    """2049 is no float16: the second set differs."""
    model = parse(
        """g (float[2,8] x, float[1] s) => (float[2,8] y) {
            a = Mul(s, odd)  b = Mul(s, even)  d = Sub(a, b)  e = Add(x, d)  y = Relu(e) }""",
        odd=np.float32([2049]), even=np.float32([2048]),
    )  # fmt: skip
    fine, odd = ({"x": np.full((2, 8), 2, np.float32), "s": np.float32([s])} for s in (0, 1))
    tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=fine))
    with pytest.raises(tc.onnx.ValidationError, match="'y' differs"):
        tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=[fine, odd]))
    found = tc.onnx.search(model, checks=tc.onnx.Validation(inputs=[fine, odd]), progress=None)
    assert found.kept and not tc.onnx.search(model, checks=tc.onnx.Validation(inputs=[fine]), progress=None).kept
    with pytest.raises(tc.CastError, match="there is no set of inputs"):
        tc.onnx.convert(model, to="float16", validate=tc.onnx.Validation(inputs=[]))
    onnx.save(model, folder / "in/sets.onnx")
    for name, arrays in (("fine", fine), ("odd", odd)):
        np.savez(folder / f"in/{name}.npz", **arrays)
    assert tcast(folder, "in/sets.onnx", "-o", "out/o.onnx", "--inputs", "in/fine.npz").returncode == 0
    done = tcast(folder, "in/sets.onnx", "-o", "out/p.onnx", "--inputs", "in/fine.npz", "--inputs", "in/odd.npz")
    assert done.returncode == 1 and "'y' differs" in done.stderr
    words = ["tensorcast.onnx", "search", "in/sets.onnx", "-o", "out/q.onnx", "--inputs", "in/fine.npz", "--inputs", "in/odd.npz"]
    done = python(folder, *words)
    assert done.returncode == 0 and " kept: " in done.stdout, done.stderr


def test_a_scheme_needs_no_type_as_a_command(folder):
    words = ["tensorcast.onnx", "convert", "in/good.onnx", "-o", "out/o.onnx"]
    done = python(folder, *words, "--weights-only", "int8")
    assert done.returncode == 0 and "out/o.onnx" in done.stdout, done.stderr
    done = python(folder, *words, "--weights-only", "-f")
    assert done.returncode == 2 and "give --to TYPE, or --weights-only SCHEME" in done.stderr
    done = python(folder, "tensorcast.onnx", "search", "in/good.onnx", "-o", "out/s.onnx", "--weights-only", "int8")
    assert done.returncode == 0 and "out/s.onnx: 1 weight in int8, 1 node added" in done.stdout, done.stderr
    onnx.save(parse("g (float[2] x) => (float[2] y) { y = Relu(x) }"), folder / "in/none.onnx")
    done = python(folder, "tensorcast.onnx", "convert", "in/none.onnx", "-o", "out/n.onnx", "--weights-only", "int8")
    assert "0 weights in int8" in done.stdout and "no product takes a constant matrix" in done.stdout, done.stderr
    assert tc.onnx.search(good(), weights_only="int8", progress=None).result.to == "int8"
    assert tc.onnx.search(good(), progress=None).result.to == "float16"


@pytest.mark.parametrize("command", ["convert", "search"])
@pytest.mark.parametrize("words, said", [
    ("--to int8", "a model cannot become int8"), ("--to qq", 'unknown dtype "qq"'), ("--weights-only gptq", "gptq"),
    ("--to float16 --keep Relu", '"Relu" selects no nodes'), ("--weights-only int4-group --group-size 48", "groups of 48"),
])  # fmt: skip
def test_what_no_model_decides_is_wrong_usage(folder, command, words, said):
    done = python(folder, "tensorcast.onnx", command, "in/missing.onnx", "-o", "out/o.onnx", *words.split())
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("words, said", [
    ("--inputs x.npz", "--inputs requires --validate"), ("--seed 3", "--seed requires --validate"),
    ("--dims N=3", "--dims requires --validate"), ("--cosine 0.5", "--cosine requires --validate"),
])  # fmt: skip
def test_options_of_the_validation_need_it(folder, words, said):
    done = python(folder, "tensorcast.onnx", "convert", "in/good.onnx", "-o", "out/o.onnx", "--to", "float16", *words.split())
    assert done.returncode == 2 and said in done.stderr and names(folder / "out") == []


def test_wrong_inputs_are_named(folder):
    def said(inputs=None, model=None, **checks):
        with pytest.raises(tc.CastError) as raised:
            tc.onnx.convert(model or good(), to="float16", validate=tc.onnx.Validation(inputs=inputs, **checks))
        return str(raised.value)

    both = parse("g (float[N,8] x, int64[2] i) => (float[2,8] y) { g = Gather(x, i)  y = Relu(g) }")
    assert said(dims={"M": 3}) == "no input of the model has the length 'M', only 'N'"
    assert said(model=ill(), dims={"M": 3}).endswith("has the length 'M'; none of its lengths has a name")
    assert said({"x": np.ones((2, 8), np.int64)}) == "the input 'x' is int64, and the model takes float32"
    assert said({"x": X, "i": np.int32([0, 1])}, both) == "the input 'i' is int32, and the model takes int64"
    assert said({"x": X}, both) == "no array is given for the input 'i'; the model takes 'x', 'i'"
    assert tc.onnx.validate(good(), good(), "float32", tc.onnx.Validation(inputs={"x": X.astype(np.float64)}))[0].passed
    longer = parse("g (float[N,8] x, float[K,8] z) => (float[5,8] y) { a = Reshape(x, s)  y = Add(a, z) }", s=np.int64([5, 8]))
    assert said(model=longer).endswith("give inputs with --inputs, or the length of 'N', 'K' with --dims; in Python inputs=, dims=")
    np.savez(folder / "objects.npz", x=np.array([None]))
    (folder / "text.npz").write_text("x")
    (folder / "empty.npz").write_text("")
    (folder / "cut.npz").write_bytes((folder / "in/x.npz").read_bytes()[:100])
    np.save(folder / "x.npy", X)
    for name in ("objects.npz", "text.npz", "empty.npz", "cut.npz", "x.npy"):
        assert f"{name} is no npz file" in said(folder / name)


def test_a_search_refuses_its_place_before_it_begins(folder):
    seen = []
    for place, error in (("in/good.onnx", FileExistsError), ("absent/o.onnx", FileNotFoundError)):
        with pytest.raises(error):
            tc.onnx.search(folder / "in/good.onnx", folder / place, progress=seen.append)
    assert not seen
    done = python(folder, "tensorcast.onnx", "search", "in/good.onnx", "-o", "in/ill.onnx")
    assert done.returncode == 1 and "in/ill.onnx: the file exists already; --force replaces it" in done.stderr
    with pytest.raises(tc.onnx.ValidationError, match="; keep_io_types leaves inputs and outputs as they are"):
        tc.onnx.search(ill(), metric=lambda old, new: False, progress=None)


def test_a_search_says_what_it_converted(folder):
    """A node that is not kept may stay, too: for a CPU, bfloat16 converts no product."""
    done = python(folder, "tensorcast.onnx", "search", "in/good.onnx", "-o", "out/o.onnx", "--to", "bfloat16")
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "attempt 1: 0 of 3 nodes kept: passes"
    assert "out/o.onnx: 0 of 3 nodes converted, " in done.stdout and "  1 attempt, 0 nodes kept" in done.stdout
