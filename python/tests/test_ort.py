# SPDX-License-Identifier: Apache-2.0
"""tensorcast inside ONNX Runtime."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from arrays import codes, samples
from onnx import TensorProto, helper
from ort_models import (
    IR, OPSET, OWN, RELEASE, WHOLE_MODELS, cast, fails, feeds_of, float16_cnn, float16_transformer, model, node, options,
    profiled, session, value,
)  # fmt: skip

import tensorcast as tc
from tensorcast import CastError, ort

needs_cast = pytest.mark.skipif(RELEASE < (1, 22), reason="ONNX Runtime 1.21 ignores the type that an operator infers")
TYPES = [entry for entry in tc.dtypes() if entry.onnx and entry.name not in ("float6_e2m3fn", "float6_e3m2fn")]
if RELEASE < (1, 24):
    TYPES = [entry for entry in TYPES if entry.onnx < 23]
elif RELEASE < (1, 27):
    TYPES = [entry for entry in TYPES if entry.name != "float8_e8m0fnu"]
NUMBER = {entry.name: entry.onnx for entry in TYPES}
NUMERIC = [name for name in NUMBER if name != "string"]
needs_provider = pytest.mark.skipif(RELEASE < (1, 24), reason="ONNX Runtime before 1.24 has no kernels in plugins")
OURS, THEIRS = ort.provider_name(), "CPUExecutionProvider"
# The ways to a Cast of tensorcast: the domain of the nodes, and the settings of the session.
WAYS = [pytest.param(OWN, {}, id="own"), pytest.param("", {"override": True}, id="override"),
        pytest.param("", {"provider": True}, id="provider", marks=needs_provider)]  # fmt: skip


@pytest.fixture(scope="module")
def everything():
    """A graph that casts x to every type, and on to every type, and shows each result as float32."""
    made = {}
    for domain in (OWN, ""):
        nodes, outputs = [], []
        for first in NUMERIC:
            nodes.append(cast("x", first, NUMBER[first], domain))
            for second in NUMERIC:
                name = f"{first}.{second}"
                nodes += [cast(first, f"{name}.codes", NUMBER[second], domain), cast(f"{name}.codes", name, 11, domain)]
                outputs.append(value(name, 11))
        made[domain] = model(nodes, [value("x", 1)], outputs)
    return made


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS)
def test_every_pair_equals_tensorcast(everything, domain, way, tmp_path):
    x = np.float32([0, -0.0, 1, -1, 1.5, 2.5, -3, 7, 8, 0.1, 240, 448, 465, -449, 65504, 1e-7, 3e9, np.inf, -np.inf, np.nan])
    outputs, ran = profiled(everything[domain], {"x": x}, tmp_path, **way)
    results = dict(zip([output.name for output in everything[domain].graph.output], outputs, strict=True))
    assert len(results) == len(NUMERIC) ** 2 and set(ran) == {("Cast", OURS if way.get("provider") else THEIRS)}
    for first in NUMERIC:
        middle = tc.cast(x, first)
        for second in NUMERIC:
            expected = tc.cast(tc.cast(middle, second), "float64")
            found = results[f"{first}.{second}"]
            assert np.array_equal(found.view(np.uint64), expected.view(np.uint64)), (first, second)


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS)
@pytest.mark.parametrize(("source", "target"), [("float32", "float16"), ("float16", "float32"), ("float64", "float16"),
                                                ("float32", "int8"), ("int64", "float16")])  # fmt: skip
def test_arrays_of_every_size_have_the_same_bits(domain, way, source, target):
    made = model([cast("x", "y", NUMBER[target], domain)], [value("x", NUMBER[source])], [value("y", NUMBER[target])])
    runs = [session(made, **way, threads=threads) for threads in (1, 3)]
    every = np.resize(samples(source), 300_001)
    for count in (0, 1, 7, 1000, 131_071, 131_072, 300_001):
        expected = codes(tc.cast(every[:count], target))
        for run in runs:
            assert np.array_equal(codes(run.run(None, {"x": every[:count]})[0]), expected), count


@needs_cast
@pytest.mark.parametrize(("source", "target"), [("float32", "float16"), ("float32", "int8"), ("float64", "float8_e4m3fn")])
def test_random_words_go_by_the_place_in_the_tensor(source, target):
    made = model([cast("x", "y", NUMBER[target], rounding="stochastic", seed=7)], [value("x", NUMBER[source])],
                 [value("y", NUMBER[target])])  # fmt: skip
    x = np.full(700_000, 1.03125 + 2**-11, source)  # between two numbers of each type
    expected = codes(tc.cast(x, target, rounding="stochastic", seed=7))
    assert (expected[:65_536] != expected[65_536:131_072]).any()
    for threads in (1, 3):
        run = session(made, threads=threads)
        for count in (1000, 131_071, 200_000, 700_000):
            assert np.array_equal(codes(run.run(None, {"x": x[:count]})[0]), expected[:count]), (threads, count)


@needs_cast
def test_attributes_and_options():
    x = np.float32([1e9, -1.5, 3, np.inf])
    made = lambda to, **attributes: session(model([cast("x", "c", NUMBER[to], **attributes), cast("c", "y", 1)],
                                                  [value("x", 1)], [value("y", 1)]))  # fmt: skip
    for to, attributes in [
        ("float8_e4m3fn", {"saturate": 0}), ("int8", {"out_of_range": "saturate"}), ("int32", {"rounding": "nearest_even"}),
        ("float16", {"scale": 0.5}), ("float16", {"out_of_range": "saturate"}), ("float8_e5m2fnuz", {"opset": 19, "fnuz_inf": "flt_max"}),
    ]:  # fmt: skip
        expected = tc.cast(tc.cast(x, to, **attributes), "float32")
        assert np.array_equal(made(to, **attributes).run(None, {"x": x})[0], expected, equal_nan=True), to
    if "float8_e8m0fnu" in NUMBER:
        for mode in ("up", "down", "nearest"):
            assert made("float8_e8m0fnu", round_mode=mode).run(None, {"x": x[2:3]})[0] == (2 if mode == "down" else 4)
    with pytest.raises(Exception, match='tensorcast: element 1: |tensorcast: .*element 3'):
        made("uint8", out_of_range="error").run(None, {"x": np.float32([1, 1e9])})
    integers = lambda rule: session(model([cast("x", "y", 2, out_of_range=rule)], [value("x", 7)], [value("y", 2)]))
    assert integers("saturate").run(None, {"x": np.int64([300, -5])})[0].tolist() == [255, 0]
    with pytest.raises(Exception, match="300 does not fit uint8"):
        integers("error").run(None, {"x": np.int64([300, -5])})
    with pytest.raises(Exception, match='out_of_range is "clip", and must be one of: auto, wrap, saturate, error'):
        fails(model([cast("x", "y", 3, out_of_range="clip")], [value("x", 1)], [value("y", 3)]))


@needs_cast
def test_an_error_in_a_large_array_names_the_element():
    made = session(model([cast("x", "y", 3, out_of_range="error")], [value("x", 1)], [value("y", 3)]), threads=2)
    x = np.zeros(400_000, np.float32)
    assert not made.run(None, {"x": x})[0].any()
    x[[398_765, 399_999]] = 1e9
    with pytest.raises(Exception, match="398765"):
        made.run(None, {"x": x})


def test_cast_like():
    made = session(model([helper.make_node("CastLike", ["x", "like"], ["y"], domain=OWN)],
                         [value("x", 1), value("like", 10, ["m"])], [value("y", 10)]))  # fmt: skip
    x = np.float32([1 / 3, 1e9])
    assert np.array_equal(made.run(None, {"x": x, "like": np.zeros(3, np.float16)})[0], tc.cast(x, "float16"))
    if "float8_e8m0fnu" in NUMBER:
        nodes = [cast("l", "like", 24), helper.make_node("CastLike", ["x", "like"], ["c"], domain=OWN), cast("c", "y", 1)]
        newest = model(nodes, [value("x", 1), value("l", 1)], [value("y", 1)])
        assert session(newest, all_pairs=True).run(None, {"x": np.float32([3]), "l": np.float32([1])})[0] == 4
        with pytest.raises(Exception, match="float8e8m0.*CastLike"):
            fails(newest)


@needs_cast
def test_strings():
    nodes = [cast("x", "y", 8), cast("y", "s", 8), cast("s", "z", 10)]
    made = session(model(nodes, [value("x", 1)], [value("y", 8), value("z", 10)]))
    y, z = made.run(None, {"x": np.float32([0.1, -2, np.inf, np.nan])})
    assert y.tolist() == tc.cast(np.float32([0.1, -2, np.inf, np.nan]), "string").tolist()
    assert np.array_equal(z, np.float16([0.1, -2, np.inf, np.nan]), equal_nan=True)
    text = session(model([cast("x", "y", 1)], [value("x", 8)], [value("y", 1)]))
    with pytest.raises(Exception, match='tensorcast: .*"x1"'):
        text.run(None, {"x": np.array(["1", "x1"])})
    assert text.run(None, {"x": np.array([], dtype=str)})[0].shape == (0,)


@needs_cast
@pytest.mark.parametrize("way", [pytest.param({"override": True}, id="override"),
                                 pytest.param({"provider": True}, id="provider", marks=needs_provider)])  # fmt: skip
def test_node_tests_of_onnx(way):
    """ONNX's own tests of Cast and CastLike, whose tensors have types that the runtime's Python has not: so the inputs
    are in the model, and the outputs are shown as float64."""
    loader = pytest.importorskip("onnx.backend.test.loader")
    ran = 0
    for case in loader.load_model_tests(kind="node"):
        if not case.name.startswith(("test_cast_", "test_castlike_")):
            continue
        folder = pathlib.Path(case.model_dir)
        made = onnx.load(folder / "model.onnx")
        read = lambda name: onnx.TensorProto.FromString((folder / "test_data_set_0" / name).read_bytes())  # noqa: B023
        given, wanted = [read(f"input_{k}.pb") for k in range(len(made.graph.input))], read("output_0.pb")
        types = {tensor.data_type for tensor in (*given, wanted)}
        if TensorProto.STRING in types or not types <= set(NUMBER.values()):
            continue
        if made.opset_import[0].version > OPSET:  # whose CastLike has no newer types
            if max(types) > TensorProto.INT4:
                continue
            made.opset_import[0].version = OPSET
        made.ir_version = min(made.ir_version, IR)
        for tensor, info in zip(given, made.graph.input, strict=True):
            tensor.name = info.name
            made.graph.initializer.append(tensor)
        del made.graph.input[:]
        shown = made.graph.output[0].name
        made.graph.node.append(cast(shown, "shown", TensorProto.DOUBLE, ""))
        del made.graph.output[:]
        made.graph.output.append(value("shown", TensorProto.DOUBLE, None))
        if OPSET < 24 and any(attribute.name == "round_mode" for node in made.graph.node for attribute in node.attribute):
            continue
        unfolded = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        (found,) = session(made, **way, graph_optimization_level=unfolded).run(None, {})
        expected = tc.cast(onnx.numpy_helper.to_array(wanted), "float64")
        assert np.array_equal(found.view(np.uint64), expected.view(np.uint64)), case.name
        ran += 1
    assert ran >= (100 if RELEASE >= (1, 25) else 60)


@needs_cast
def test_strings_stay_the_runtimes_with_override():
    made = model([cast("x", "s", 8, ""), cast("s", "y", 11, "")], [value("x", 1)], [value("s", 8), value("y", 11)])
    x = np.float32([0.1, 1e-7, 123456789, -np.inf])
    ours, theirs = (session(made, register=register, override=register).run(None, {"x": x}) for register in (True, False))
    assert ours[0].tolist() == theirs[0].tolist() and ours[1].tolist() == theirs[1].tolist()


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS[1:])
@pytest.mark.parametrize("make", WHOLE_MODELS, ids=lambda make: make.__name__)
def test_whole_models_give_the_same(make, domain, way):
    made, shapes = make()
    feeds = feeds_of(made, shapes)
    expected = session(made, register=False).run(None, feeds)
    results = [session(made, **way, threads=threads).run(None, feeds) for threads in (1, 2)]
    for found in results:
        for ours, theirs in zip(found, expected, strict=True):
            assert np.isfinite(theirs.astype(np.float32)).all() and theirs.any()
            if RELEASE == (1, 22):  # removes pairs of its own inserted Casts, which would round to float16 in between
                assert np.allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=2**-9)
            else:
                assert np.array_equal(codes(ours), codes(theirs))


@needs_cast
def test_override_takes_the_casts_that_the_runtime_inserts(tmp_path):
    """A conversion in which the runtime's built-in rounds twice shows who did it: float64 to float16."""
    made = model([node("Erf", ["x"][0], "a"), cast("a", "y", 11, "")], [value("x", 10)], [value("y", 11)], opset=17, ir=9)
    settings = options(override=True, enable_profiling=True, profile_file_prefix=str(tmp_path / "profile"))
    run = onnxruntime.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    x = np.float16([0.5, -1])
    expected = session(made, register=False).run(None, {"x": x})[0]
    assert np.array_equal(run.run(None, {"x": x})[0], expected)
    events = json.loads(pathlib.Path(run.end_profiling()).read_text())
    inserted = [event["name"] for event in events if "InsertedPrecisionFreeCast" in event.get("name", "")]
    assert inserted


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS[1:])
def test_float64_is_rounded_once(domain, way):
    x = np.float64([1 + 2**-11 + 2**-40])  # float32 first, as the built-in does, gives a tie that rounds down
    made = model([cast("x", "y", 10, "")], [value("x", 11)], [value("y", 10)])
    assert session(made, register=False).run(None, {"x": x})[0] == 1
    assert session(made, **way).run(None, {"x": x})[0] == np.float16(1 + 2**-10)


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS[1:])
def test_casts_inside_branches_functions_and_constants(domain, way):
    then = helper.make_graph([cast("x", "t", 10, "")], "then", [], [value("t", 10)])
    other = helper.make_graph([cast("x", "e", 11, ""), cast("e", "f", 10, "")], "else", [], [value("f", 10)])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    constant = helper.make_tensor("w", 1, [3], np.float32([1 / 3, 2, 1e6]).tobytes(), raw=True)
    nodes = [branch, cast("w", "k", 10, ""), cast("w", "d", 11, ""), helper.make_node("CastLike", ["x", "k"], ["l"])]
    made = session(model(nodes, [value("c", 9, []), value("x", 1)],
                         [value("y", 10), value("k", 10, [3]), value("d", 11, [3]), value("l", 10)], [constant]),
                   **way)  # fmt: skip
    x = np.float32([0.1, 70000])
    for condition in (True, False):
        y, k, d, like = made.run(None, {"c": np.array(condition), "x": x})
        assert y.tolist() == like.tolist() == tc.cast(x, "float16").tolist()
        assert k.tolist() == np.float16([1 / 3, 2, np.inf]).tolist() and d.tolist() == np.float32([1 / 3, 2, 1e6]).tolist()


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS[1:])
@pytest.mark.parametrize("opset", [6, 9, 11, 13, 15, 17, 19, 21])
def test_every_opset(opset, domain, way):
    made = model([cast("x", "y", 10, "")], [value("x", 1)], [value("y", 10)], opset=opset, ir=8)
    assert session(made, **way).run(None, {"x": np.float32([0.1])})[0] == np.float16(0.1)


@needs_provider
@pytest.mark.parametrize("opset", [9, 13, 19, OPSET])
def test_the_provider_takes_the_numeric_casts_of_the_model(opset, tmp_path):
    inner = helper.make_function("mine", "F", ["a"], ["b"], [cast("a", "b", 10, "")], [helper.make_opsetid("", opset)])
    then = helper.make_graph([cast("x", "t", 10, "")], "then", [], [value("t", 10)])
    constant = helper.make_tensor("w", 11, [2], np.float64([1, 2]).tobytes(), raw=True)
    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=then), node("F", "x", "f", domain="mine"),
        cast("x", "s", 8, ""), cast("s", "n", 1, ""), cast("w", "k", 10, ""),
        node("Neg", "x", "m"), cast("m", "h", 10, ""), node("Concat", "h k", "y", axis=0),
    ]  # fmt: skip
    made = model(nodes, [value("c", 9, []), value("x", 11)],
                 [value("i", 10), value("f", 10), value("s", 8), value("n", 1), value("y", 10, ["m"])], [constant],
                 opset=opset, ir=8 if opset < OPSET else IR, functions=[inner])  # fmt: skip
    made.opset_import.append(helper.make_opsetid("mine", 1))
    x = np.float64([1 + 2**-11 + 2**-40, 3])
    (i, f, s, n, y), ran = profiled(made, {"c": np.array(True), "x": x}, tmp_path, provider=True)
    once = np.float16([1 + 2**-10, 3])
    assert np.array_equal(i, once) and np.array_equal(f, once) and np.array_equal(y, [*-once, 1, 2])
    assert s[1] == "3" and np.array_equal(n, x.astype(np.float32))
    # Those of the branch, the function and the graph. The runtime computed that of the constant when it made the session.
    assert ran["Cast", OURS] == 3


@needs_provider
def test_the_provider_changes_nothing_else(tmp_path):
    """The runtime fuses the layer norm and copies nothing between providers; the Casts that it inserts stay its own."""
    for make in (float16_cnn, float16_transformer):
        made, shapes = make()
        feeds = feeds_of(made, shapes)
        _, alone = profiled(made, feeds, tmp_path, register=False)
        _, ran = profiled(made, feeds, tmp_path, provider=True)
        assert {operator for operator, provider in ran if provider == OURS} <= {"Cast"}
        together = ran.copy()
        for name, provider in ran:
            if provider == OURS:
                together[name, THEIRS] += together.pop((name, OURS))
        assert together == alone, make


@needs_cast
def test_function_body_runs_without_the_library():
    inner = helper.make_node("Cast", ["x"], ["y"])
    attribute = inner.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "to", "to", onnx.AttributeProto.INT
    body = helper.make_function(OWN, "Cast", ["x"], ["y"], [inner], [helper.make_opsetid("", OPSET)], ["to"])
    made = model([cast("x", "y", 10)], [value("x", 11)], [value("y", 10)], functions=[body])
    x = np.float64([1 + 2**-11 + 2**-40])
    assert session(made, register=False).run(None, {"x": x})[0] == 1
    assert session(made).run(None, {"x": x})[0] == np.float16(1 + 2**-10)


@needs_cast
@pytest.mark.parametrize("opset", [17, OPSET])
def test_use_tensorcast(opset):
    then = helper.make_graph([cast("x", "t", 10, "")], "then", [], [value("t", 10)])
    other = helper.make_graph([cast("x", "e", 11, ""), cast("e", "f", 10, "")], "else", [], [value("f", 10)])
    inner = helper.make_function("mine", "F", ["a"], ["b"], [cast("a", "b", 10, "")], [helper.make_opsetid("", opset)])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other), cast("x", "z", 10, ""),
             helper.make_node("F", ["x"], ["w"], domain="mine")]  # fmt: skip
    made = model(nodes, [value("c", 9, []), value("x", 11)], [value("y", 10), value("z", 10), value("w", 10)],
                 opset=opset, ir=9 if opset == 17 else IR, functions=[inner])  # fmt: skip
    made.opset_import.append(helper.make_opsetid("mine", 1))
    assert ort.use_tensorcast(made) == 5
    assert ort.use_tensorcast(made) == 0
    onnx.checker.check_model(made)
    feeds = {"x": np.float64([1 + 2**-11 + 2**-40])}
    for condition in (True, False):
        feeds["c"] = np.array(condition)
        assert [float(y[0]) for y in session(made, register=False).run(None, feeds)] == [1, 1, 1]
        assert [float(y[0]) for y in session(made).run(None, feeds)] == [1 + 2**-10] * 3


def test_use_tensorcast_keeps_attributes_and_refuses_old_models():
    made = model([cast("x", "y", 17, "", saturate=0)], [value("x", 1)], [value("y", 17)], opset=19, ir=9)
    assert ort.use_tensorcast(made) == 1
    assert {entry.name: helper.get_attribute_value(entry) for entry in made.graph.node[0].attribute} == {"to": 17, "saturate": 0}
    assert ort.use_tensorcast(model([node("Neg", "x", "y")], [value("x", 1)], [value("y", 1)])) == 0
    old = model([cast("x", "y", 10, "")], [value("x", 1)], [value("y", 10)], opset=11, ir=6)
    before = old.SerializeToString()
    with pytest.raises(tc.UnsupportedError, match="opset 11 and file format 6"):
        ort.use_tensorcast(old)
    assert old.SerializeToString() == before


def test_use_tensorcast_with_files(tmp_path):
    made = model([cast("x", "y", 10, "")], [value("x", 11)], [value("y", 10)])
    onnx.save(made, tmp_path / "m.onnx")
    with pytest.raises(CastError, match="output="):
        ort.use_tensorcast(tmp_path / "m.onnx")
    with pytest.raises(TypeError, match="output="):
        ort.use_tensorcast(made, tmp_path / "new.onnx")
    assert ort.use_tensorcast(tmp_path / "m.onnx", tmp_path / "new.onnx") == 1
    with pytest.raises(FileExistsError):
        ort.use_tensorcast(tmp_path / "m.onnx", str(tmp_path / "new.onnx"))
    assert ort.use_tensorcast(tmp_path / "new.onnx", tmp_path / "new.onnx", overwrite=True) == 0
    x = np.float64([1 + 2**-11 + 2**-40])  # the runtime rounds it twice, tensorcast once
    assert onnx.load(tmp_path / "new.onnx") != made
    assert session(onnx.load(tmp_path / "new.onnx"), register=False).run(None, {"x": x})[0] == 1
    expected = 1 if RELEASE < (1, 22) else np.float16(1 + 2**-10)  # 1.21 runs the function's body
    assert session(onnx.load(tmp_path / "new.onnx")).run(None, {"x": x})[0] == expected


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS[1:])
def test_sessions_on_many_threads(domain, way):
    made, shapes = float16_transformer()
    feeds = feeds_of(made, shapes)
    shared = session(made, **way, threads=2)
    expected = shared.run(None, feeds)[0]

    def work(index):
        run = shared if index % 2 else session(made, **way)
        return all(np.array_equal(run.run(None, feeds)[0], expected) for _ in range(10))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


@needs_cast
@pytest.mark.parametrize(("domain", "way"), WAYS)
@pytest.mark.parametrize("nodes", [
    pytest.param(lambda d: [helper.make_node("Cast", ["x"], ["y"], domain=d)], id="no-to"),
    pytest.param(lambda d: [cast("x", "y", 0, d)], id="to-undefined"),
    pytest.param(lambda d: [cast("x", "y", 999, d)], id="to-unknown"),
    pytest.param(lambda d: [cast("x", "y", -1, d)], id="to-negative"),
    pytest.param(lambda d: [cast("x", "y", 2**40, d)], id="to-huge"),
    pytest.param(lambda d: [cast("x", "y", 14, d)], id="complex"),
    pytest.param(lambda d: [helper.make_node("Cast", ["x"], ["y"], domain=d, to="FLOAT16")], id="to-text"),
    pytest.param(lambda d: [helper.make_node("Cast", ["x", "x"], ["y"], domain=d, to=10)], id="two-inputs"),
    pytest.param(lambda d: [helper.make_node("Cast", [], ["y"], domain=d, to=10)], id="no-input"),
    pytest.param(lambda d: [helper.make_node("Cast", [""], ["y"], domain=d, to=10)], id="empty-input"),
    pytest.param(lambda d: [cast("x", "y", 16, d)], id="other-output-type"),
    pytest.param(lambda d: [cast("missing", "y", 10, d)], id="missing-input"),
    pytest.param(lambda d: [helper.make_node("Cast", ["x"], ["y"], domain=d, to=10, round_mode="sideways")], id="round-mode"),
])  # fmt: skip
def test_wrong_models_give_ordinary_errors(nodes, domain, way):
    made = model(nodes(domain), [value("x", 1)], [value("y", 10)])
    with pytest.raises(Exception, match=r"ONNXRuntimeError|tensorcast"):
        fails(made, **way)


@pytest.mark.parametrize(("library", "functions"), [
    (ort.library_path, ["RegisterCustomOps"]), (ort.provider_library_path, ["CreateEpFactories", "ReleaseEpFactory"]),
])  # fmt: skip
def test_a_library_links_no_runtime_and_shows_what_the_runtime_looks_up(library, functions):
    path = library()
    assert path.name.startswith("libtensorcast_onnxruntime") and path.is_file()
    dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True)
    if dynamic.returncode == 0:
        assert "onnxruntime" not in "".join(line for line in dynamic.stdout.splitlines() if "NEEDED" in line)
        symbols = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout.split("\n")
        assert sorted(line.split()[-1] for line in symbols if " T " in line) == functions


def test_old_releases_are_refused(monkeypatch):
    for release, settings, message in [
        ("1.20.1", {}, r"tensorcast needs ONNX Runtime 1\.21 or newer, and this is 1\.20\.1"),
        ("1.21.1", {"override": True}, r"override=True needs ONNX Runtime 1\.22"),
        ("1.23.2", {"provider": True}, r"provider=True needs ONNX Runtime 1\.24"),
    ]:
        monkeypatch.setattr(onnxruntime, "__version__", release)
        with pytest.raises(CastError, match=message):
            ort.register(onnxruntime.SessionOptions(), **settings)
    with pytest.raises(CastError, match="override and provider exclude each other"):
        ort.register(onnxruntime.SessionOptions(), override=True, provider=True)


@needs_provider
@pytest.mark.parametrize("opset, expected", [(21, [7, -8, 3]), (23, [7, -8, 3]), (24, [-7, -4, 3])])
def test_the_provider_has_the_rules_of_the_models_opset(opset, expected):
    made = model([cast("x", "y", 22, ""), cast("y", "z", 1, "")], [value("x", 1)], [value("z", 1)])
    made.opset_import[0].version, made.ir_version = opset, 10
    found = session(made, provider=True).run(None, {"x": np.float32([9, -20, 3])})[0]
    assert found.tolist() == expected == tc.cast(tc.cast(np.float32([9, -20, 3]), "int4", opset=opset), "float32").tolist()


def test_what_options_have_is_not_added_again():
    made = model([helper.make_node("CastLike", ["x", "like"], ["y"], domain=OWN)],  # 1.21 has no Cast
                 [value("x", 1), value("like", 10, ["m"])], [value("y", 10)])  # fmt: skip
    ways = [{}, {"override": True}] if RELEASE >= (1, 22) else [{}]
    for way in ways:
        settings = onnxruntime.SessionOptions()
        for _ in range(2):
            ort.register(settings, **way)
        run = onnxruntime.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        assert run.run(None, {"x": np.float32([1.5]), "like": np.float16([1])})[0].tolist() == [1.5]
    settings = onnxruntime.SessionOptions()
    ort.register(settings)
    if RELEASE >= (1, 22):
        with pytest.raises(CastError, match="have the operators already; override=True needs new ones"):
            ort.register(settings, override=True)


# In a process of its own, which registers the provider's library as others do.
PROVIDER_USES = """
import numpy as np, onnxruntime, sys
from tensorcast import ort
model, name, library = sys.argv[1], ort.provider_name(), str(ort.provider_library_path())
run = lambda session: session.run(None, {"x": np.float32([9, 1.5])})[0].tolist()
onnxruntime.register_execution_provider_library(name, library)
onnxruntime.register_execution_provider_library("another name", library)
is_named = tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 25)
named = onnxruntime.InferenceSession(model, providers=[name, "CPUExecutionProvider"]) if is_named else None
settings = onnxruntime.SessionOptions()
for _ in range(2):
    ort.register(settings, provider=True)
ours = onnxruntime.InferenceSession(model, settings)
for session in filter(None, (named, ours)):
    assert session.get_providers()[0] == name and run(session) == [9, 1.5]
onnxruntime.unregister_execution_provider_library("another name")
onnxruntime.unregister_execution_provider_library(name)
for session in filter(None, (named, ours)):
    assert run(session) == [9, 1.5]
del named, ours, session, settings
settings = onnxruntime.SessionOptions()
ort.register(settings, provider=True)
assert run(onnxruntime.InferenceSession(model, settings)) == [9, 1.5]
print("done")
"""


@needs_provider
def test_the_provider_by_name_and_after_its_library_was_unregistered(tmp_path):
    made = model([cast("x", "y", 10, ""), cast("y", "z", 1, "")], [value("x", 1)], [value("z", 1)])
    onnx.save(made, tmp_path / "m.onnx")
    done = subprocess.run([sys.executable, "-c", PROVIDER_USES, tmp_path / "m.onnx"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.skipif(RELEASE != (1, 23), reason="needs a release with plugins, but without their kernels")
def test_the_provider_itself_refuses_old_releases():
    with pytest.raises(Exception, match=r"tensorcast: needs ONNX Runtime 1\.24 or newer"):
        onnxruntime.register_execution_provider_library(OURS, str(ort.provider_library_path()))


@needs_cast
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"out_of_range": 3}, "out_of_range must be a string, and is an integer"),
        ({"rounding": 1.5}, "rounding must be a string, and is a float"),
        ({"opset": "19"}, "opset must be an integer, and is a string"),
        ({"opset": 19.0}, "opset must be an integer, and is a float"),
        ({"saturate": "x"}, "saturate must be an integer, and is a string"),
        ({"saturate": [1]}, "saturate must be an integer, and is a list"),
        ({"scale": "2"}, "scale must be a number, and is a string"),
        ({"scale": [2.0]}, "scale must be a number, and is a list"),
        ({"scale": helper.make_tensor("", 1, [], [2.0])}, "scale must be a number, and is a tensor"),
    ],
)
def test_attributes_of_a_wrong_kind_are_refused(attributes, message):
    like = helper.make_node("CastLike", ["x", "l"], ["z"], domain=OWN, **attributes)
    for nodes, inputs, output in (([cast("x", "y", 3, **attributes)], [value("x", 1)], value("y", 3)),
                                  ([like], [value("x", 1), value("l", 3)], value("z", 3))):  # fmt: skip
        with pytest.raises(Exception, match=f"tensorcast: {message}"):
            fails(model(nodes, inputs, [output]))
    if set(attributes) == {"saturate"}:
        with pytest.raises(Exception, match="saturate"):
            fails(model([cast("x", "y", 17, "", **attributes)], [value("x", 1)], [value("y", 17)]), override=True)


@needs_cast
def test_an_integer_is_a_number():
    for scale in (2, 2.0, -3):
        made = session(model([cast("x", "y", 3, scale=scale)], [value("x", 1)], [value("y", 3)]))
        assert made.run(None, {"x": np.float32([1.5, 5, 2.5])})[0].tolist() == tc.cast(np.float32([1.5, 5, 2.5]), "int8", scale=scale).tolist()


@needs_provider
def test_the_provider_refuses_unknown_attributes():
    for nodes, inputs, output, message in (
        ([cast("x", "y", 3, sacle=2.0)], [value("x", 1)], value("y", 3), "Cast has no attribute sacle"),
        ([helper.make_node("CastLike", ["x", "l"], ["y"], domain=OWN, to=3)], [value("x", 1), value("l", 3)], value("y", 3),
         "CastLike has no attribute to"),
    ):  # fmt: skip
        with pytest.raises(Exception, match=message):
            fails(model(nodes, inputs, [output]), provider=True)
    known = model([cast("x", "y", 3, scale=2.0, out_of_range="saturate")], [value("x", 1)], [value("y", 3)])
    assert session(known, provider=True).run(None, {"x": np.float32([5])})[0] == 10


@needs_cast
@pytest.mark.parametrize("all_pairs", [False, True])
def test_cast_like_of_every_pair(all_pairs):
    x = np.float32([0, 1, -1, 1.5, 7, 300, np.inf])
    nodes, outputs = [cast("x", name, NUMBER[name]) for name in NUMERIC], []
    for first in NUMERIC:
        for second in NUMERIC:
            if not all_pairs and NUMBER[second] >= NUMBER.get("float8_e8m0fnu", 24):
                continue
            name = f"{first}.{second}"
            nodes += [helper.make_node("CastLike", [first, second], [f"{name}.codes"], domain=OWN), cast(f"{name}.codes", name, 11)]
            outputs.append(value(name, 11))
    made = session(model(nodes, [value("x", 1)], outputs), all_pairs=all_pairs)
    for output, found in zip(outputs, made.run(None, {"x": x}), strict=True):
        first, second = output.name.split(".")
        expected = tc.cast(tc.cast(tc.cast(x, first), second), "float64")
        assert np.array_equal(found.view(np.uint64), expected.view(np.uint64)), output.name


def test_the_library_stays_loaded_after_the_last_session():
    """Its declarations are made once in a process; each time that it was loaded anew lost 0.18 MiB."""
    code = f"""
import gc, onnxruntime
from tensorcast import ort
data = {model([helper.make_node("Relu", ["x"], ["y"])], [value("x", 1)], [value("y", 1)]).SerializeToString()!r}
def loaded():
    return {{line.split()[0] for line in open("/proc/self/maps") if line.rstrip().endswith("libtensorcast_onnxruntime.so")}}
def session():
    options = onnxruntime.SessionOptions()
    ort.register(options)
    onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
session()
gc.collect()
before = loaded()
assert before
for _ in range(5):
    session()
    gc.collect()
    assert loaded() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)
