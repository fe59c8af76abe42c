# SPDX-License-Identifier: Apache-2.0
"""tensorcast.mdf beside the functions of modeci_mdf that it replaces, alone and within the package's own engine."""

import importlib.metadata
import itertools
import os
import re
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import tensorcast
from tensorcast import mdf

onnx_functions = pytest.importorskip("modeci_mdf.functions.onnx")
execution_engine = pytest.importorskip("modeci_mdf.execution_engine")
from modeci_mdf.mdf import Edge, Function, Graph, InputPort, Model, Node, OutputPort, Parameter  # noqa: E402

ORIGINAL = {"cast": onnx_functions.cast, "castlike": onnx_functions.castlike}
# What the original can give: the others fail in it.
TARGETS = [1, 2, 3, 6, 7, 8, 9, 11]
SOURCES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.fixture
def installed():
    mdf.install()
    yield
    mdf.uninstall()


def same(ours, theirs):
    assert type(ours) is type(theirs) is np.ndarray
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert ours.flags.c_contiguous
    if ours.dtype == object:
        assert ours.tolist() == theirs.tolist()
    else:
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("to", TARGETS)
def test_cast_gives_what_the_original_gives(source, to):
    values = np.array([0, 1, 2, 100, 7.75, 0.1]).astype(source)
    if not source.startswith("u") and source != "bool":
        values = np.concatenate([values, -values])
    for x in (values, values.reshape(2, -1), values[::2], values[:0], np.asfortranarray(values.reshape(2, -1))):
        if to == 8 and source == "float16":
            continue  # ONNX Runtime writes the float16 with the digits of a float32
        same(mdf.cast(x, to=to), ORIGINAL["cast"](x, to=to))
    same(mdf.cast(values[1:2].reshape(()), to), ORIGINAL["cast"](values[1:2].reshape(()), to))


@pytest.mark.parametrize("to", [t for t in TARGETS if t not in (6, 7)])
def test_what_is_defined_at_the_ends_of_the_ranges(to):
    x = np.float32([np.nan, np.inf, -np.inf, 1e38, -1e38]) if to in (1, 8, 9, 11) else np.int64([300, -300, 2**40, -1])
    same(mdf.cast(x, to=to), ORIGINAL["cast"](x, to=to))


@pytest.mark.parametrize(
    "x",
    [[1, 2], [1.5, -2.5], [[1], [2]], 3, 3.7, -1, np.array([16777217.0]), np.array(["3", "4.5", "-1e3"]), ["7"],
     np.array(["1", "2"], object), np.array([True, False])],
    ids=repr,
)
def test_every_kind_of_argument(x):
    for to in (1, 7, 11):
        if to == 7 and np.asarray(x).dtype.kind in "UO":
            continue  # ONNX Runtime stops at the first character that is not a digit
        same(mdf.cast(x, to=to), ORIGINAL["cast"](x, to=to))


def test_positions_and_names_may_mix():
    x = np.float32([1.5, -2.5])
    like = np.int8([0])
    for call in (
        lambda f: f["cast"](x, 7),
        lambda f: f["cast"](7, input=x),
        lambda f: f["cast"](input=x, to=7),
        lambda f: f["cast"](to=7, input=x),
        lambda f: f["cast"](x, 7, 8),
        lambda f: f["cast"](x, to=np.int64),
        lambda f: f["castlike"](x, like),
        lambda f: f["castlike"](like, input=x),
        lambda f: f["castlike"](target_type=like, input=x),
        lambda f: f["castlike"](x, like, 3),
    ):
        same(call({"cast": mdf.cast, "castlike": mdf.castlike}), call(ORIGINAL))


def test_a_tensor_and_a_named_type_are_not_swapped():
    # The original takes them in the order in which it met them, and casts the second like the first.
    x, like = np.float32([1.5, -2.5]), np.int8([0])
    same(mdf.castlike(x, target_type=like), np.int8([1, -2]))
    same(ORIGINAL["castlike"](x, target_type=like), np.float32([0]))


@pytest.mark.parametrize("target", [np.int32([1]), np.float64([1]), np.int8([1]), np.array([True]), [1], [1.5], 3, 2.5,
                                    np.array(["x"])], ids=repr)
def test_castlike_gives_what_the_original_gives(target):
    for x in (np.float32([1.5, -2.5]), np.int64([[1], [0]]), [1, 2], 3.5):
        same(mdf.castlike(x, target), ORIGINAL["castlike"](x, target))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda f: f["cast"](np.float32([1]), to=7, saturate=1), ValueError),
        (lambda f: f["castlike"](np.float32([1]), np.float32([1]), to=7), ValueError),
        (lambda f: f["cast"](np.float32([1])), Exception),
        (lambda f: f["cast"](to=7), Exception),
        (lambda f: f["cast"](None, to=7), Exception),
        (lambda f: f["cast"](True, to=7), Exception),
        (lambda f: f["cast"](np.complex64([1]), to=7), Exception),
        (lambda f: f["cast"](np.float32([1]), to=None), Exception),
        (lambda f: f["cast"](np.float32([1]), to=14), Exception),
        (lambda f: f["cast"](np.float32([1]), to=17), Exception),
        (lambda f: f["cast"](np.array(["x"]), to=1), Exception),
        (lambda f: f["castlike"](np.float32([1])), Exception),
    ],
)
def test_both_refuse_the_same(call, error):
    with pytest.raises(error) as ours:
        call({"cast": mdf.cast, "castlike": mdf.castlike})
    assert isinstance(ours.value, (ValueError, TypeError))
    with pytest.raises(error) as theirs:
        call(ORIGINAL)
    if error is ValueError:
        assert str(ours.value) == str(theirs.value)


def test_undefined_values_follow_our_definitions():
    x = np.float32([np.nan, np.inf, 1e20, 3e9])
    assert mdf.cast(x, to=6).tolist() == tensorcast.cast(x, "int32", opset=15).tolist()


def test_types_that_the_original_cannot_give():
    x = np.float32([1.5, 70000])
    for name in ("int16", "uint16", "float16", "uint32", "uint64", "bfloat16"):
        number = {"int16": 5, "uint16": 4, "float16": 10, "uint32": 12, "uint64": 13, "bfloat16": 16}[name]
        assert mdf.cast(x, to=number).tobytes() == tensorcast.cast(x, name, opset=15).tobytes()


def test_torch_tensors_are_inputs():
    torch = pytest.importorskip("torch")
    assert mdf.cast(torch.tensor([1.5, 2.5]), to=7).tolist() == [1, 2]


def test_install_and_uninstall_are_exact_and_may_be_repeated():
    before = {name: dict(vars(module)) for name, module in sys.modules.items() if name.startswith("modeci_mdf")}
    try:
        mdf.install()
        mdf.install()
        assert onnx_functions.cast is mdf.cast and onnx_functions.castlike is mdf.castlike
    finally:
        mdf.uninstall()
    mdf.uninstall()
    after = {name: dict(vars(module)) for name, module in sys.modules.items() if name.startswith("modeci_mdf")}
    assert before.keys() == after.keys()
    assert all(before[name][key] is after[name][key] for name in before for key in before[name])
    assert onnx_functions.cast is ORIGINAL["cast"]


def test_functions_imported_by_name_are_replaced_too():
    engine = vars(execution_engine)
    engine["borrowed"] = onnx_functions.cast
    try:
        mdf.install()
        assert engine["borrowed"] is mdf.cast
        mdf.uninstall()
        assert engine["borrowed"] is ORIGINAL["cast"]
    finally:
        mdf.uninstall()
        del engine["borrowed"]


def test_without_the_package_the_error_says_what_to_do():
    code = (
        "import sys; sys.modules['modeci_mdf'] = None\n"
        "from tensorcast import mdf\n"
        "try: mdf.install()\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "pip install modeci_mdf" in result.stdout, result.stderr


# --- models ---


def model_of_many_functions():
    """Casts among other functions: ((x -> int64) + 1) -> float32 * 0.5, and CastLike of it."""
    model = Model(id="m")
    graph = Graph(id="g")
    model.graphs.append(graph)

    first = Node(id="first")
    first.input_ports.append(InputPort(id="x", shape="(3,)", type="float32"))
    first.parameters.append(Parameter(id="to", value=7))
    first.parameters.append(Parameter(id="onnx_Cast_1", function="onnx::Cast", args={"input": "x"}))
    first.output_ports.append(OutputPort(id="out", value="onnx_Cast_1"))

    second = Node(id="second")
    second.input_ports.append(InputPort(id="a"))
    second.parameters.append(Parameter(id="one", value=[1]))
    second.parameters.append(Parameter(id="sum", function="onnx::Add", args={"A": "a", "B": "one"}))
    second.output_ports.append(OutputPort(id="out", value="sum"))

    third = Node(id="third")
    third.input_ports.append(InputPort(id="b"))
    third.parameters.append(Parameter(id="like", value=[0.5]))
    third.functions.append(Function(id="back", function="onnx::CastLike", args={"input": "b", "target_type": "like"}))
    third.parameters.append(Parameter(id="half", function="onnx::Mul", args={"A": "back", "B": "like"}))
    third.output_ports.append(OutputPort(id="out", value="half"))

    graph.nodes.extend([first, second, third])
    for sender, receiver, port in ((first, second, "a"), (second, third, "b")):
        graph.edges.append(
            Edge(id=f"{sender.id}_{receiver.id}", sender=sender.id, receiver=receiver.id, sender_port="out",
                 receiver_port=port)
        )
    return model


def run_in_the_engine(x):
    evaluable = execution_engine.EvaluableGraph(model_of_many_functions().graphs[0])
    evaluable.evaluate(initializer={"x": x})
    return {
        node: evaluable.enodes[node].evaluable_outputs["out"].curr_value for node in ("first", "second", "third")
    }


def test_the_engine_gives_the_same_with_and_without(capsys):
    x = np.float32([1.5, -2.5, 1000])
    without = run_in_the_engine(x)
    mdf.install()
    try:
        within = run_in_the_engine(x)
    finally:
        mdf.uninstall()
    assert without["third"].tolist() == [1.0, -0.5, 500.5]
    for node in without:
        same(np.asarray(within[node]), np.asarray(without[node]))


def test_the_engine_does_call_us(installed, monkeypatch, capsys):
    calls = itertools.count()
    real = mdf._convert
    monkeypatch.setattr(mdf, "_convert", lambda x, to: (next(calls), real(x, to))[1])
    run_in_the_engine(np.float32([1, 2, 3]))
    assert next(calls) == 2


def test_the_packages_own_tests_of_these_functions_pass(tmp_path):
    """From its source archive, which pip fetches; the module is run with our functions in place."""
    version = importlib.metadata.version("modeci_mdf")
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
         "-d", str(tmp_path), f"modeci_mdf=={version}"],
        capture_output=True, text=True, timeout=300)
    archives = list(tmp_path.glob("*.tar.gz"))
    if not archives:
        pytest.skip(f"no source archive: {fetched.stderr[-200:]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (tests,) = tmp_path.glob("*/tests/test_onnx_functions.py")
    (tmp_path / "with_tensorcast.py").write_text("from tensorcast import mdf\nmdf.install()\n")

    def outcome(*plugins):
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", *plugins,
             "--rootdir", str(tests.parent), str(tests)], capture_output=True, text=True, timeout=300, cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"})
        return re.findall(r"\d+ (?:passed|failed|error)", result.stdout)

    with_ours = outcome("-p", "with_tensorcast")
    assert any("passed" in count for count in with_ours)
    assert with_ours == outcome()


@pytest.mark.parametrize("texts", [["a", "bcd"], [], [["1", "22"]]])
@pytest.mark.parametrize("kind", ["<U5", ">U5", "S5", object])
def test_texts_are_in_arrays_of_objects(texts, kind):
    for x in (np.array(texts, kind), np.asfortranarray(np.array(texts, kind))):
        for result in (mdf.cast(x, to=8), mdf.cast(x, to=np.dtype("<U9")), mdf.castlike(x, np.array(["z"]))):
            assert result.dtype == object and result.tolist() == texts and result.flags.c_contiguous
