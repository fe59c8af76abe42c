# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx use-tensorcast`: Casts become calls of a function of the model, and nothing else changes.

python/tests/test_ort.py runs such models with tensorcast's library; here they run without it.
"""

import json
import shutil

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

OWN = "ai.tensorcast"
F16, F32 = TensorProto.FLOAT16, TensorProto.FLOAT
X = np.float32([[1.5, -2.25, 70000]])


def parse(text, opset=21, ir=10, more=""):
    return onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}, "mine" : 1]>\n{text}\n{more}')


def run(path, **feeds):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.fixture
def rewrite(run_tcast, tmp_path):
    """Rewrites a model twice: the second time changes nothing."""
    def rewritten(model, count):
        onnx.save(model, tmp_path / "in.onnx")
        done = run_tcast("onnx", "use-tensorcast", "in.onnx", "-o", "out.onnx", "--force", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["casts_rewritten"] == count
        again = run_tcast("onnx", "use-tensorcast", "out.onnx", "-o", "again.onnx", "--force")
        assert again.stdout.startswith("again.onnx: 0 changes"), again.stderr
        assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "again.onnx").read_bytes()
        new = onnx.load(tmp_path / "out.onnx")
        onnx.checker.check_model(new, full_check=True)
        return new
    return rewritten


CASTS = """g (float[1,3] x, bool c) => (float16[1,3] y, float[1,3] z) {
    [first] h = Cast<to = 10>(x)
    t = If(c) <then_branch: graph = t () => (float16[1,3] a) { [inner] a = Cast<to = 10>(x) },
               else_branch: graph = e () => (float16[1,3] b) { b = Neg(h) }>
    y = Add(h, t)
    z = mine.Round(x)
}"""
ROUND = '<opset_import: ["" : 21], domain: "mine"> Round (p) => (q) { r = Cast<to = 10>(p)  q = Cast<to = 1>(r) }'


def test_casts_of_all_graphs_become_calls(rewrite, tmp_path):
    model = parse(CASTS, more=ROUND)
    new = rewrite(model, 4)
    then = new.graph.node[1].attribute[0].g.node[0]
    assert [node.domain for node in (new.graph.node[0], then, *new.functions[0].node)] == [OWN] * 4
    assert (new.graph.node[0].name, then.name) == ("first", "inner")
    assert {entry.domain: entry.version for entry in new.opset_import}[OWN] == 1
    assert {entry.domain: entry.version for entry in new.functions[0].opset_import} == {"": 21, OWN: 1}
    (own,) = (function for function in new.functions if function.domain == OWN)
    assert (own.name, [node.op_type for node in own.node], list(own.attribute)) == ("Cast", ["Cast"], ["to", "saturate"])
    for condition in (False, True):
        feeds = {"x": X, "c": np.array(condition)}
        for old, made in zip(run(tmp_path / "in.onnx", **feeds), run(tmp_path / "out.onnx", **feeds), strict=True):
            assert np.array_equal(old, made, equal_nan=True)


@pytest.mark.parametrize("opset, names", [(13, ["to"]), (18, ["to"]), (19, ["to", "saturate"]),
                                          (24, ["to", "saturate", "round_mode"])])
def test_each_call_gives_what_the_function_takes(rewrite, opset, names):
    new = rewrite(parse("g (float[1,3] x) => (float16[1,3] y) { y = Cast<to = 10>(x) }", opset=opset), 1)
    assert [attribute.name for attribute in new.graph.node[0].attribute] == names
    assert list(new.functions[0].attribute) == names
    onnx.shape_inference.infer_shapes(new, strict_mode=True)


def test_attributes_that_are_there_stay(rewrite):
    new = rewrite(parse("g (float[3] x) => (float8e5m2[3] y) { y = Cast<saturate = 0, to = 19>(x) }"), 1)
    assert [(each.name, each.i) for each in new.graph.node[0].attribute] == [("saturate", 0), ("to", 19)]


def test_everything_else_is_copied(rewrite, tmp_path):
    """Unknown fields, annotations, and nodes of other domains that are called Cast."""
    model = parse("g (float[1,3] x) => (float[1,3] y) { h = mine.Cast<to = 10>(x)  y = Cast<to = 1>(h) }",
                  more='<opset_import: ["" : 21], domain: "mine"> Cast <to> (p) => (q) { q = Identity(p) }')
    del model.functions[0].attribute[:]
    del model.graph.node[0].attribute[:]
    model.graph.doc_string = "words"
    model.metadata_props.add(key="k", value="v")
    model.graph.quantization_annotation.add(tensor_name="h")
    new = rewrite(model, 1)
    node = new.graph.node[1]
    assert node.domain == OWN
    node.domain = model.graph.node[1].domain = ""
    del node.attribute[1:], new.functions[1:], new.opset_import[2:]
    assert new == model


def test_a_model_without_casts_is_the_same(rewrite, tmp_path):
    rewrite(parse("g (float[1,3] x) => (float[1,3] y) { y = Neg(x) }"), 0)
    assert (tmp_path / "in.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes()


def test_functions_of_another_opset_stay(run_tcast, tmp_path):
    model = parse("g (float[1,3] x) => (float[1,3] y) { h = mine.Round(x)  y = Cast<to = 1>(h) }",
                  more=ROUND.replace("21", "17"))
    onnx.save(model, tmp_path / "in.onnx")
    done = run_tcast("onnx", "use-tensorcast", "in.onnx", "-o", "out.onnx")
    assert done.stdout == "out.onnx: 1 Cast rewritten, 2 left in functions of another opset\n"
    assert [node.domain for node in onnx.load(tmp_path / "out.onnx").functions[0].node] == ["", ""]


@pytest.mark.parametrize("opset, ir, words", [(12, 8, "opset 12 and file format 8"), (21, 7, "opset 21 and file format 7")])
def test_models_without_functions_are_refused(run_tcast, tmp_path, opset, ir, words):
    onnx.save(parse("g (float[1,3] x) => (float16[1,3] y) { y = Cast<to = 10>(x) }", opset=opset, ir=ir), tmp_path / "in.onnx")
    done = run_tcast("onnx", "use-tensorcast", "in.onnx", "-o", "out.onnx")
    assert done.returncode == 1 and words in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]


def test_another_function_of_the_name_is_refused(run_tcast, tmp_path):
    model = parse("g (float[1,3] x) => (float16[1,3] y) { y = Cast<to = 10>(x) }",
                  more=f'<opset_import: ["" : 21], domain: "{OWN}"> Cast (p) => (q) {{ q = Neg(p) }}')
    onnx.save(model, tmp_path / "in.onnx")
    done = run_tcast("onnx", "use-tensorcast", "in.onnx", "-o", "out.onnx")
    assert done.returncode == 1 and "another function ai.tensorcast::Cast" in done.stderr
    assert not (tmp_path / "out.onnx").exists()


@pytest.fixture
def external(tmp_path):
    """A model in folder `a` whose weights are in two files beside it."""
    model = parse("g (float[1,3] x) => (float16[1,3] y) { s = Add(x, w)  t = Add(s, v)  y = Cast<to = 10>(t) }")
    (tmp_path / "a" / "deep").mkdir(parents=True)
    for name, place in (("w", "w.bin"), ("v", "deep/v.bin")):
        tensor = numpy_helper.from_array(np.float32([[1, 2, 3]]), name)
        (tmp_path / "a" / place).write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=place)
        model.graph.initializer.append(tensor)
    onnx.save(model, tmp_path / "a" / "in.onnx")
    return tmp_path


def test_external_data_stays_in_its_folder(external, run_tcast):
    before = {path: path.stat().st_mtime_ns for path in external.rglob("*.bin")}
    assert run_tcast("onnx", "use-tensorcast", "a/in.onnx", "-o", "a/out.onnx").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in external.rglob("*.bin")} == before
    assert run(external / "a" / "out.onnx", x=X)[0].tolist() == [[3.5, 1.75, np.inf]]


def test_external_data_is_copied_to_another_folder(external, run_tcast):
    (external / "b").mkdir()
    assert run_tcast("onnx", "use-tensorcast", "a/in.onnx", "-o", "b/out.onnx").returncode == 0
    for place in ("w.bin", "deep/v.bin"):
        assert (external / "b" / place).read_bytes() == (external / "a" / place).read_bytes()
    assert run(external / "b" / "out.onnx", x=X)[0].tolist() == [[3.5, 1.75, np.inf]]


@pytest.mark.parametrize("break_it", [
    lambda folder: (folder / "a" / "deep" / "v.bin").unlink(),
    lambda folder: (folder / "b" / "w.bin").write_bytes(b"precious"),
], ids=["missing", "in-the-way"])
def test_a_failure_leaves_nothing(external, run_tcast, break_it):
    (external / "b").mkdir()
    break_it(external)
    before = {path: path.read_bytes() for path in external.rglob("*") if path.is_file()}
    done = run_tcast("onnx", "use-tensorcast", "a/in.onnx", "-o", "b/out.onnx")
    assert done.returncode == 1
    assert {path: path.read_bytes() for path in external.rglob("*") if path.is_file()} == before
    assert not (external / "b" / "deep").exists()


def test_the_output_may_not_be_the_external_data(external, run_tcast):
    (external / "b").mkdir()
    done = run_tcast("onnx", "use-tensorcast", "a/in.onnx", "-o", "b/w.bin")
    assert done.returncode == 1 and "the output would overwrite the external data of the model" in done.stderr
    assert not list((external / "b").iterdir())


def test_locations_that_lead_elsewhere_are_refused(external, run_tcast):
    model = onnx.load(external / "a" / "in.onnx", load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../a/w.bin"
    onnx.save(model, external / "a" / "in.onnx")
    (external / "b").mkdir()
    done = run_tcast("onnx", "use-tensorcast", "a/in.onnx", "-o", "b/out.onnx")
    assert done.returncode == 1 and not list((external / "b").iterdir())


def test_hostile_models(run_tcast, source_dir, tmp_path):
    files = sorted((source_dir / "src/models/onnx/testdata/invalid").glob("*.onnx"))
    assert len(files) > 90
    for path in files:
        done = run_tcast("onnx", "use-tensorcast", path, "-o", "out.onnx")
        assert done.returncode in (0, 1) and "internal" not in done.stderr, path.name
        assert (tmp_path / "out.onnx").exists() == (done.returncode == 0), path.name
        for made in tmp_path.iterdir():  # external data is copied, in its folder
            shutil.rmtree(made) if made.is_dir() else made.unlink()


def test_a_model_with_calls_can_still_be_converted(rewrite, run_tcast, tmp_path):
    """The calls keep their function, whatever types they take, and what they give is known."""
    text = """g (float[1,3] x, int64[1,3] i) => (float[1,3] y) {
        h = Cast<to = 10>(x)  k = Cast<to = 10>(i)  s = Add(h, k)  t = Neg(s)  y = Cast<to = 1>(t) }"""
    rewrite(parse(text), 3)
    done = run_tcast("onnx", "convert", "out.onnx", "-o", "f32.onnx", "--to", "float32", "--force")
    assert done.returncode == 0, done.stderr
    new = onnx.load(tmp_path / "f32.onnx")
    onnx.checker.check_model(new, full_check=True)
    assert [(each.domain, each.name) for each in new.functions] == [(OWN, "Cast")]
    (add,) = (node for node in new.graph.node if node.op_type == "Add")
    producers = {name: node for node in new.graph.node for name in node.output}
    assert all(producers[name].op_type == "Cast" and producers[name].domain == "" for name in add.input)
    x = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(run(tmp_path / "f32.onnx", x=x, i=np.int64([[1, 1, 1]]))[0], [[-2, -3, -4]])
