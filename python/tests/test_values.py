# SPDX-License-Identifier: Apache-2.0
"""Values of the package are pickled, copied, shown and typed as Python's own are."""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tensorcast as tc

X = np.float32([[1, 2, 300], [0.5, -7, 3]])
COPIES = [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy]


@pytest.mark.parametrize("copied", COPIES)
def test_nodes(copied):
    node = tc.CastNode("float16", name="n", lda_coeff=0.5, saturate=False)
    node.forward(X)
    again = copied(node)
    assert (type(again), again.parameters, again is node) == (tc.CastNode, node.parameters, False)
    assert np.array_equal(again.forward(X), node.forward(X))
    assert np.array_equal(again.backward(np.ones_like(X, np.float16)), np.full_like(X, 0.5))
    like = copied(tc.CastLikeNode(out_of_range="saturate"))
    assert like.forward(X, np.int8([0])).max() == 127


def a_graph():
    graph = tc.graph.Graph("g")
    x = graph.input("x", "float32", [None, 3])
    d = graph.input("d", "float32", [1], default=np.float32([2.5]))
    c = graph.constant(np.int8([1, 2]), name="c")
    graph.output(graph.cast(x, "float8_e4m3fn", saturate=False, scale=2.0), "float8_e4m3fn")
    graph.output(graph.cast_like(d, c, out_of_range="saturate", opset=24))
    graph.output(graph.convert_promote_types(x, c, promote_unsafe=True)[1])
    graph.output(graph.identity(c))
    graph.output(graph.constant(np.array(["a", "b"], object)))
    return graph


@pytest.mark.parametrize("copied", COPIES)
def test_graphs_and_programs(copied):
    graph = a_graph()
    expected = graph.compile().run({"x": X})
    for program in (copied(graph).compile(), copied(graph.compile()), copied(copied(graph.compile()))):
        done = program.run({"x": X})
        assert list(done) == list(expected)
        for name, array in done.items():
            assert array.dtype == expected[name].dtype and array.tolist().__repr__() == expected[name].tolist().__repr__()
        assert program.inputs == graph.compile().inputs and program.outputs == graph.compile().outputs
        assert program.name == "g"
    one = copied(graph)
    one.output(one.cast("x", "int8"))  # the copy goes on by itself, with names of its own
    assert len(one.compile().outputs) == len(graph.compile().outputs) + 1


@pytest.mark.parametrize("copied", COPIES)
def test_programs_of_models(copied):
    onnx = pytest.importorskip("onnx")
    helper, of = onnx.helper, onnx.TensorProto
    branch = lambda to: helper.make_graph([helper.make_node("Cast", ["x"], ["b"], to=to)], "b", [], [
        helper.make_tensor_value_info("b", of.FLOAT16, None)])  # fmt: skip
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch(of.FLOAT16), else_branch=branch(of.FLOAT16)),
        helper.make_node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(np.int64([5]))),
        helper.make_node("CastLike", ["k", "x"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", of.FLOAT, [2, 3]), helper.make_tensor_value_info("c", of.BOOL, [1])],
        [helper.make_tensor_value_info("y", of.FLOAT16, None), helper.make_tensor_value_info("z", of.FLOAT, None)],
    )  # fmt: skip
    program = tc.load_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    again = copied(program)
    assert (again.format, again.name) == ("onnx", "g")
    values = {"x": X, "c": np.array([True])}
    assert {name: value.tolist() for name, value in again.run(values).items()} == {
        name: value.tolist() for name, value in program.run(values).items()
    }


def test_representations_fit_a_screen(tmp_path):
    tensors = {f"layers.{number}.a.rather.long.name.of.a.tensor" * 3: X for number in range(500)}
    tc.save(tmp_path / "x.safetensors", tensors, metadata={str(number): "m" * 50 for number in range(300)})
    info = tc.inspect(tmp_path / "x.safetensors")
    done = tc.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", "float16", report=True)
    graph = tc.graph.Graph("g" * 500)
    for number in range(300):
        graph.output(graph.identity(graph.input(f"x{number}", "float32")))
    shown = [info, done, tc.open(tmp_path / "x.safetensors"), graph, graph.compile(), tc.dtypes()[0], done.tensors[0]]
    for value in shown:
        lines = repr(value).splitlines()
        assert len(lines) <= 30 and len(repr(value)) < 3000, repr(value)
        assert max(map(len, lines)) <= 1000
    assert "500" in repr(info) and "495 more" in repr(info)
    for value in (info, done, shown[2], graph.compile(), info.tensors[0]):
        page = value._repr_html_()
        assert page.startswith("<table>") and len(page) < 200_000
    assert "450 more" in info._repr_html_()
    assert "&lt;b&gt;" in tc.inspect(_named(tmp_path, "<b>"))._repr_html_()


def _named(folder, name):
    tc.save(folder / "named.safetensors", {name: X})
    return folder / "named.safetensors"


def test_a_short_result_is_its_constructor():
    info = tc.TensorInfo(name="x", dtype="float32", shape=(2, 3), bytes=24)
    assert repr(info) == "TensorInfo(name='x', dtype='float32', shape=(2, 3), bytes=24)"


def test_import_star_leaves_open_alone():
    names: dict[str, object] = {}
    exec("from tensorcast import *", names)
    assert "open" not in names and names["cast"] is tc.cast and callable(tc.open)


def test_modules_without_another_import():
    """Each is there when it is named; the package alone imports none of their libraries."""
    code = (
        "import sys, tensorcast as tc\n"
        "loaded = {'torch', 'onnx', 'onnxruntime', 'openvino', 'jax', 'pandas', 'ray'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "assert set(dir(tc)) >= {'torch', 'ort', 'openvino', 'mdf', 'open'}\n"
        "assert tc.ort.library_path and tc.mdf.cast and tc.torch.convert_module\n"
        "try: tc.torhc\n"
        "except AttributeError as error: print(error)\n"
    )
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "module 'tensorcast' has no attribute 'torhc'\n", done.stderr


def test_import_loads_little():
    """The package is imported before it is known what for, so it loads the core alone: 10 ms beyond NumPy."""
    code = (
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import tensorcast\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("tensorcast")}
    modules = ("_core", "_errors", "_cast", "_cast._pool", "_cast._report_text", "_interop", "_interop._torch_hooks")
    assert ours == {"tensorcast"} | {f"tensorcast.{name}" for name in modules}
    heavy = {"argparse", "asyncio", "ctypes", "json", "multiprocessing", "pathlib", "socket", "subprocess", "tempfile"}
    assert not heavy & set(loaded)


def test_every_name_is_there():
    for name in [*tc.__all__, *dir(tc)]:
        if name not in {"mdf", "onnx_backend", "openvino", "ort", "ray", "torch"}:  # may lack what they import
            assert getattr(tc, name) is not None, name


def test_state_dicts_keep_their_keys():
    torch = pytest.importorskip("torch")
    make = lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    model = make()
    keys = set(model.state_dict())
    tc.torch.convert_module(model, {"weight": "float8_e4m3fn", "bias": "float16"}, compute_dtype="float32")
    state = model.state_dict()
    assert set(state) == keys and state["0.weight"].dtype == torch.float8_e4m3fn
    other = tc.torch.convert_module(make(), {"weight": "float8_e4m3fn", "bias": "float16"}, compute_dtype="float32")
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    other = copy.deepcopy(other)
    x = torch.ones(3, 4)
    assert torch.equal(other.eval()(x), model.eval()(x)) and set(other.state_dict()) == keys


def test_a_loss_warning_that_is_an_error_comes_before_the_file(tmp_path):
    tc.save(tmp_path / "x.safetensors", {"x": np.float32([0.1, 0.2, 0.3, 200])})
    (tmp_path / "old.npz").write_bytes(b"old")
    with warnings.catch_warnings():
        warnings.simplefilter("error", tc.LossWarning)
        for target in ("y.safetensors", "old.npz", "new/y.npz"):
            with pytest.raises(tc.LossWarning, match="became zero"):
                tc.convert(tmp_path / "x.safetensors", tmp_path / target, "int8", overwrite=True, parents=True)
        assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["old.npz", "x.safetensors"]
        assert (tmp_path / "old.npz").read_bytes() == b"old"
        with pytest.raises(tc.FileError, match="absent/y.npz"):
            tc.convert(tmp_path / "x.safetensors", tmp_path / "absent" / "y.npz", "float16")
        tc.convert(tmp_path / "x.safetensors", tmp_path / "old.npz", "float16", overwrite=True)
        assert tc.load(tmp_path / "old.npz")["x"].dtype == np.float16
        mine = tmp_path / "late.npz"
        with pytest.raises(FileExistsError, match="late.npz"):
            tc.convert(tmp_path / "x.safetensors", mine, "float16", progress=lambda *_: mine.write_bytes(b"mine"))
        assert mine.read_bytes() == b"mine" and not list(tmp_path.glob(".tensorcast-*"))
        (tmp_path / "x.safetensors").chmod(0o640)
        tc.convert(tmp_path / "x.safetensors", tmp_path / "mode.npz", "float16")
        assert (tmp_path / "mode.npz").stat().st_mode & 0o777 == 0o640
        tc.save(tmp_path / "folder" / "model.safetensors", {"x": np.float32([0.1, 0.2, 0.3, 200])}, parents=True)
        with pytest.raises((tc.LossWarning, tc.CastError)):
            tc.convert(tmp_path / "folder", tmp_path / "out", "int8")
        assert not (tmp_path / "out" / "model.safetensors").exists()
    with pytest.warns(tc.LossWarning) as said:
        tc.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", "int8")
    assert said[0].filename == __file__
