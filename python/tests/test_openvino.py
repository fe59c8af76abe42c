# SPDX-License-Identifier: Apache-2.0
"""tensorcast inside OpenVINO models."""

import concurrent.futures
import contextlib
import pathlib
import shutil
import subprocess
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest
from arrays import codes, samples

import tensorcast as tc

ov = pytest.importorskip("openvino")

try:
    from openvino import opset14 as ops
except ImportError:  # before 2025.0
    from openvino.runtime import opset14 as ops

from tensorcast import openvino as own
from tensorcast.openvino import use_tensorcast

TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
         "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "i4": "int4",
         "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "u4": "uint4", "boolean": "bool"}  # fmt: skip
CORE = ov.Core()


def model_of(results, parameters):
    return ov.Model([ops.result(value) for value in results], parameters, "model")


def run(model, *inputs):
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(list(inputs)).values())


def kinds(model):
    return sorted(f"{node.get_type_name()}.{node.get_type_info().version_id}" for node in model.get_ops()
                  if "Convert" in node.get_type_name())  # fmt: skip


@pytest.mark.parametrize("to", TYPES)
def test_conversions_equal_cast(to):
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, to), "f64")], [x])
    assert use_tensorcast(model) == 2 and kinds(model) == ["Convert.tensorcast"] * 2
    given = samples("float32")[:301]
    (found,) = run(model, given)
    assert np.array_equal(codes(found), codes(tc.cast(tc.cast(given, TYPES[to]), "float64")))


def test_options_and_names():
    x = ops.parameter([-1, 2], ov.Type.f32, name="x")
    convert = ops.convert(x, "u8")
    convert.set_friendly_name("to_bytes")
    model = model_of([convert], [x])
    assert use_tensorcast(model, out_of_range="saturate") == 1
    assert "to_bytes" in {node.get_friendly_name() for node in model.get_ops()}
    assert run(model, np.float32([[300, -5], [7, 255]]))[0].tolist() == [[255, 0], [7, 255]]
    assert use_tensorcast(model) == 0  # already done
    x = ops.parameter([-1], ov.Type.i32, name="x")
    model = model_of([ops.convert(x, "u8"), ops.convert(x, "f16")], [x])
    use_tensorcast(model, out_of_range="saturate")
    assert [found.tolist() for found in run(model, np.int32([300, -5, 10**6]))] == [[255, 0, 255], [300, -5, 65504]]


def test_promotion():
    a, b = ops.parameter([-1], ov.Type.i8, name="a"), ops.parameter([-1], ov.Type.f16, name="b")
    both = ops.convert_promote_types(a, b)
    model = model_of([both.output(0), both.output(1)], [a, b])
    assert use_tensorcast(model, by_text=True) == 1 and kinds(model) == ["Convert.tensorcast"]
    first, second = run(model, np.int8([1, -2]), np.float16([0.5]))
    assert first.dtype == np.float16 and first.tolist() == [1, -2] and second.tolist() == [0.5]


def test_promotion_that_the_text_forbids():
    a, b = ops.parameter([], ov.Type.u8, name="a"), ops.parameter([-1], ov.Type.i8, name="b")
    make = lambda: model_of(
        [ops.convert_promote_types(a, b, pytorch_scalar_promotion=True).output(0)], [a, b])  # fmt: skip
    model = make()
    with pytest.raises(tc.CastError, match="ConvertPromoteTypes_"):
        use_tensorcast(model, by_text=True)
    assert kinds(model) == ["ConvertPromoteTypes.opset14"]
    assert use_tensorcast(model) == 1
    assert run(model, np.uint8(200), np.int8([1]))[0].tolist() == -56


def test_constants_stay_unless_asked_for():
    x = ops.parameter([-1, 4], ov.Type.f32, name="x")
    weights = ops.constant(np.arange(8, dtype=np.int8).reshape(4, 2))
    make = lambda: model_of([ops.matmul(x, ops.convert(weights, "f32"), False, False)], [x])
    given = np.float32([[1, 2, 3, 4]])
    expected = run(make(), given)[0]
    for constants, count in ((False, 0), (True, 1)):
        model = make()
        assert use_tensorcast(model, constants=constants) == count
        assert np.array_equal(run(model, given)[0], expected)


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_widening_stays_unless_scaled(narrow):
    """The plugin does it before any operation that is not its own."""
    x = ops.parameter([-1], ov.Type.f32, name="x")
    make = lambda: model_of([ops.convert(ops.convert(x, narrow), "f32")], [x])
    given = samples("float32")[:301]
    rounded = tc.cast(tc.cast(given, TYPES[narrow]), "float32")
    for options, count in (({}, 1), ({"scale": 0.5}, 2)):
        model = make()
        assert use_tensorcast(model, **options) == count and kinds(model).count("Convert.tensorcast") == count
        expected = rounded if not options else tc.cast(tc.cast(given, TYPES[narrow], **options), "float32", **options)
        found = run(model, given)[0]
        assert np.array_equal(found, expected, equal_nan=True)


def test_a_body_of_if():
    x, condition = ops.parameter([-1], ov.Type.f32, name="x"), ops.parameter([], ov.Type.boolean, name="c")
    inner, other = ops.parameter([-1], ov.Type.f32), ops.parameter([-1], ov.Type.f32)
    choice = ops.if_op(condition)
    then = model_of([ops.convert(inner, "u8")], [inner])
    otherwise = model_of([ops.convert(ops.negative(other), "u8")], [other])
    choice.set_then_body(then)
    choice.set_else_body(otherwise)
    choice.set_input(x.output(0), inner, other)
    model = model_of([choice.set_output(then.results[0], otherwise.results[0])], [x, condition])
    assert use_tensorcast(model, out_of_range="saturate", rounding="nearest_even") == 2
    assert run(model, np.float32([300, 1.5, -7]), np.array(True))[0].tolist() == [255, 2, 0]
    assert run(model, np.float32([300, 1.5, -7]), np.array(False))[0].tolist() == [0, 0, 7]


def test_bits_of_narrow_types_inside():
    x = ops.parameter([3], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, "i4"), "f8e4m3")], [x])
    use_tensorcast(model)
    assert run(model, np.float32([1, -2, 7]))[0].view(ml_dtypes.float8_e4m3fn).astype(np.float32).tolist() == [1, -2, 7]


@pytest.mark.skipif(not hasattr(ov, "DiscreteTypeInfo"), reason="OpenVINO before 2025.0 has no operations in Python")
def test_without_the_extension_the_operations_are_in_python(monkeypatch):
    monkeypatch.setattr(own, "_factory", lambda: None)
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, "u4"), "f16"), ops.convert(x, "bf16")], [x])
    assert use_tensorcast(model, out_of_range="saturate") == 3
    assert sum(isinstance(node, own.Convert) for node in model.get_ops()) == 3
    integers, narrow = run(model, np.float32([300, -5, 7.5]))
    assert integers.tolist() == [15, 0, 7]
    assert narrow.view(ml_dtypes.bfloat16).tolist() == [300, -5, 7.5]


@pytest.mark.skipif(not hasattr(ov, "DiscreteTypeInfo"), reason="OpenVINO before 2025.0 has no operations in Python")
@pytest.mark.parametrize("options", [{}, {"saturate": False, "scale": 0.1}, {"out_of_range": "wrap", "scale": 2, "opset": 19}])
def test_operations_in_python_are_saved_as_those_of_the_extension(options, monkeypatch, tmp_path):
    x = ops.parameter([-1], ov.Type.f32, name="x")
    make = lambda: model_of([ops.convert(ops.convert(x, "f8e5m2"), "f32"), ops.convert(x, "i8")], [x])
    given = np.append(samples("float32")[:101], np.float32([np.inf, 1e30]))
    with monkeypatch.context() as patched:
        patched.setattr(own, "_factory", lambda: None)
        in_python = make()
        use_tensorcast(in_python, **options)
    expected = [codes(found) for found in run(in_python, given)]
    (tmp_path / "python").mkdir()
    path = saved(in_python, tmp_path / "python")
    python_core = ov.Core()
    python_core.add_extension(own.Convert)
    cores = [python_core]
    with contextlib.suppress(tc.CastError):
        cores.append(ov.Core())
        cores[-1].add_extension(str(own.extension_path()))
        in_cpp = make()
        use_tensorcast(in_cpp, **options)
        cpp_path = saved(in_cpp, tmp_path)
        layers = [[layer.find("data").attrib for layer in ElementTree.parse(file).iter("layer")
                   if layer.get("version") == "tensorcast"] for file in (path, cpp_path)]  # fmt: skip
        assert layers[0] == layers[1]
        found = run(python_core.read_model(cpp_path), given)
        assert all(np.array_equal(codes(ours), theirs) for ours, theirs in zip(found, expected, strict=True))
    for core in cores:
        found = list(core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([given]).values())
        assert all(np.array_equal(codes(ours), theirs) for ours, theirs in zip(found, expected, strict=True))


def extension():
    try:
        return own.extension_path()
    except tc.CastError:
        pytest.skip("this build has no extension")


def extended():
    core = ov.Core()
    core.add_extension(str(extension()))
    return core


def saved(model, folder):
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    return folder / "model.xml"


def test_a_saved_model_runs_with_the_extension(tmp_path):
    core = extended()
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, "f8e5m2"), "f32"), ops.convert(x, "i4")], [x])
    given = np.append(samples("float32")[:101], np.float32([np.inf, 1e30]))
    use_tensorcast(model, saturate=False, out_of_range="wrap", scale=0.1)
    path = saved(model, tmp_path)
    assert "tensorcast" in path.read_text()
    with pytest.raises(RuntimeError, match="tensorcast"):
        ov.Core().read_model(path)
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    narrow, integers = compiled([given]).values()
    options = {"saturate": False, "scale": 0.1}
    expected = tc.cast(tc.cast(given, "float8_e5m2", **options), "float32", **options)
    assert np.array_equal(codes(narrow), codes(expected))
    expected = tc.cast(given, "int4", out_of_range="wrap", packed=True, **options)
    assert np.array_equal(integers.view(np.uint8).reshape(-1), expected)


def test_a_wrong_saved_model_is_refused(tmp_path):
    core = extended()
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(x, "u8")], [x])
    use_tensorcast(model)
    path = saved(model, tmp_path)
    good = path.read_text()
    for change in [('out_of_range="auto"', 'out_of_range="never"'), ('round_mode="up"', 'round_mode="UP"'),
                   ('opset="0"', 'opset="-7"'), ('opset="0"', 'opset="99999999999"'), ('threads="0"', 'threads="-1"'),
                   ('destination_type="u8"', 'destination_type="nf4"'),
                   ('destination_type="u8"', 'destination_type="?"'), ('destination_type="u8"', ""),
                   ('destination_type="u8"', 'destination_type="dynamic"')]:  # fmt: skip
        assert change[0] in good, change
        path.write_text(good.replace(*change))
        with pytest.raises(RuntimeError):
            core.read_model(path)
    path.write_text(good)
    core.read_model(path)
    x = ops.parameter([-1], ov.Type.f32, name="x")
    with pytest.raises(RuntimeError, match="scale"):
        use_tensorcast(model_of([ops.convert(x, "u8")], [x]), scale=float("nan"))


def test_an_element_that_the_options_refuse_is_an_error_of_the_run(tmp_path):
    core = extended()
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(x, "u8")], [x])
    use_tensorcast(model, out_of_range="error")
    compiled = core.compile_model(model, "CPU")
    with pytest.raises(RuntimeError, match="300"):
        compiled([np.float32([1, 300])])
    assert compiled([np.float32([1, 255])])[0].tolist() == [1, 255]


def test_many_threads(tmp_path):
    core = extended()
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, "bf16"), "f32")], [x])
    use_tensorcast(model)
    compiled = core.compile_model(core.read_model(saved(model, tmp_path)), "CPU", {"NUM_STREAMS": "2"})
    generator = np.random.default_rng(3)
    inputs = [generator.standard_normal(1000 * 7**k).astype(np.float32) for k in range(5)]
    expected = [x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in inputs]

    def work(index):
        request = compiled.create_infer_request()
        for turn in range(20):
            k = (index + turn) % len(inputs)
            if not np.array_equal(request.infer([inputs[k]])[0], expected[k]):
                return False
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.parametrize("by_text", [False, True])
def test_a_promotion_whose_types_come_later(tmp_path, by_text):
    core = extended()
    a, b = ops.parameter([], ov.Type.dynamic, name="a"), ops.parameter([-1], ov.Type.dynamic, name="b")
    both = ops.convert_promote_types(a, b, pytorch_scalar_promotion=True)
    model = model_of([both.output(0), both.output(1)], [a, b])
    assert use_tensorcast(model, by_text=by_text) == 1 and kinds(model) == ["ConvertPromoteTypes.tensorcast"]
    model = core.read_model(saved(model, tmp_path))
    first, second = model.get_parameters()
    first.set_element_type(ov.Type.u8)
    second.set_element_type(ov.Type.i8)
    if by_text:
        with pytest.raises(RuntimeError, match="lower range|range"):
            model.validate_nodes_and_infer_types()
        return
    model.validate_nodes_and_infer_types()
    results = list(core.compile_model(model, "CPU")([np.uint8(200), np.int8([1, -3])]).values())
    assert [result.tolist() for result in results] == [-56, [1, -3]] and results[0].dtype == np.int8


def test_the_extension_links_no_openvino():
    for library in extension().parent.glob("libtensorcast_openvino*.so"):
        assert b"libopenvino.so" not in library.read_bytes()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program in C++ that runs the pass of tensorcast/openvino.hpp, compiled with the OpenVINO of these tests."""
    here, package = pathlib.Path(__file__).parent, pathlib.Path(ov.__file__).parent
    sources = here.parents[1] / "integrations/openvino/include"
    library = next(iter(package.glob("libs/libopenvino.so.*")), None)
    if library is None or shutil.which("g++") is None or not sources.exists():
        pytest.skip("needs g++, OpenVINO's library and the sources of tensorcast")
    path = tmp_path_factory.mktemp("program") / "openvino_pass"
    strings = int(ov.get_version()[:4] >= "2026")  # the Python packages before have the older string class
    subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-D_GLIBCXX_USE_CXX11_ABI={strings}", f"-I{sources}",
                    "-isystem", package / "include", here / "openvino_pass.cpp", "-o", path, library,
                    f"-Wl,-rpath,{library.parent}", "-ldl"], check=True)  # fmt: skip
    return path


def passed(program, folder, *arguments):
    files = [folder / "model.xml", folder / "passed.xml"]
    result = subprocess.run([program, extension(), *files, *arguments], capture_output=True, text=True)
    return (files[1] if result.returncode == 0 else None), result.stderr


def test_the_pass_in_cpp_does_as_the_one_in_python(program, tmp_path):
    core = extended()
    x, a = ops.parameter([-1], ov.Type.f32, name="x"), ops.parameter([-1], ov.Type.i8, name="a")
    make = lambda: model_of([ops.convert(ops.convert(x, "f8e4m3"), "f32"), ops.convert(ops.convert(x, "f16"), "f32"),
                             *ops.convert_promote_types(a, ops.convert(x, "f16")).outputs(),
                             ops.convert(ops.constant(np.int8([1, 2])), "f32"), ops.convert(x, "u1")], [x, a])  # fmt: skip
    saved(make(), tmp_path)
    given = [np.float32([1000, 0.3, np.nan]), np.int8([1, 2])]
    for options in ({}, {"saturate": False, "scale": 0.1}):
        model = make()
        use_tensorcast(model, **options)
        path, error = passed(program, tmp_path, *(f"{name}={value}" for name, value in options.items()))
        assert path is not None, error
        read = core.read_model(path)
        # Python writes a promotion as its parts.
        scaled = "scale" in options
        assert kinds(read).count("Convert.tensorcast") == (5 if scaled else 4)
        assert kinds(read).count("ConvertPromoteTypes.tensorcast") == 1 and kinds(read).count("Convert.opset1") == (2 if scaled else 3)
        found, wanted = run(read, *given), run(model, *given)
        for ours, expected in zip(found[:-1], wanted[:-1], strict=True):  # not OpenVINO's u1, whose last bits are random
            assert np.array_equal(ours.view(np.uint8), expected.view(np.uint8))


def test_the_pass_in_cpp_refuses_what_is_wrong(program, tmp_path):
    a, b = ops.parameter([], ov.Type.u8, name="a"), ops.parameter([-1], ov.Type.i8, name="b")
    saved(model_of([ops.convert_promote_types(a, b, pytorch_scalar_promotion=True).output(0)], [a, b]), tmp_path)
    for arguments, message in [
        (["out_of_range=never"], 'out_of_range is "never", and must be one of: auto, wrap, saturate, error'),
        (["colour=red"], 'there is no option "colour"'), (["by_text=True"], "tensorcast: ConvertPromoteTypes"),
        (["opset=soon"], "soon"),
    ]:  # fmt: skip
        path, error = passed(program, tmp_path, *arguments)
        assert path is None and message in error and not (tmp_path / "passed.xml").exists()
    assert passed(program, tmp_path)[0] is not None


# Each pair as OpenVINO's own Convert has it: what its plugin would change before or after an operation stays its.
EVERY = {**TYPES, "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn"}
PACKED = ("i4", "u4", "f4e2m1")
REALS = [0, -0.0, 1, -1.5, 2.5, 0.1, -0.7, 100, 255.5, 300, -129, 448, 464, 57344, 65504, 65519, 65520, 70000, 1e-3, 1e-6, 2.0**-24,
         2.0**-25, 1e-40, 1e9 + 1, 5e8 + 1, 2.0**31, -(2.0**31), 2.0**32 - 1, 2.0**53 + 2, 2.0**63, 3.4e38, np.inf, -np.inf, np.nan]  # fmt: skip


def plain_values(name):
    if name == "boolean":
        return np.array([True, False])
    if name.startswith("f4"):
        return np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    if name.startswith("f8"):
        return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, EVERY[name]))
    if name.startswith(("f", "bf")):
        more = [1e300, -1e300, 5e-324, 1 + 2.0**-11 + 2.0**-40] if name == "f64" else []
        return tc.cast(np.float64(REALS + more), EVERY[name])
    bits = int(name[1:])
    low = -(2 ** (bits - 1)) if name[0] == "i" else 0
    high = low + 2**bits - 1
    near = {0, 1, 5, 7, 100, 65519, 65520, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**62, high, high // 2, low, low // 2, -1, -129}
    return tc.cast(np.array([x for x in sorted(near) if low <= x <= high], np.uint64 if name == "u64" else np.int64), EVERY[name])


def by_plugin(source, to, given, replaced):
    """What a model of one conversion gives; None if the plugin lacks it."""
    x = ops.parameter([given.size], getattr(ov.Type, source), name="x")
    model = model_of([ops.convert(x, to)], [x])
    if replaced:
        use_tensorcast(model)
    tensor = ov.Tensor(getattr(ov.Type, source), ov.Shape([given.size]))
    stored = tc.cast(given, given.dtype, packed=True) if source in PACKED else given
    tensor.data.view(np.uint8).reshape(-1)[...] = np.ascontiguousarray(stored).view(np.uint8).reshape(-1)
    try:
        request = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        request.set_input_tensor(tensor)
        request.infer()
    except RuntimeError:
        return None
    return tc.cast(request.get_output_tensor(), EVERY[to])


def same_bits(found, expected):
    """By element; a NaN is a NaN."""
    nans = [np.isnan(tc.cast(array, "float64")) for array in (found, expected)]
    return (codes(found) == codes(expected)) | (nans[0] & nans[1])


@pytest.mark.parametrize("source", EVERY)
def test_no_pair_is_worse_than_openvinos_own(source):
    given = plain_values(source)
    for to in EVERY:
        if to == source:
            continue
        plain, ours = (by_plugin(source, to, given, replaced) for replaced in (False, True))
        expected = tc.cast(given, EVERY[to])
        if plain is not None:
            assert ours is not None, to
            worse = same_bits(plain, expected) & ~same_bits(ours, expected)
            assert not worse.any(), (to, given[worse], plain[worse], ours[worse])


def test_models_of_types_that_the_plugin_replaces():
    """It changes float16 and others throughout a model, but not behind an operation that is not its own."""
    x = ops.parameter([-1, 8], ov.Type.f32, name="x")
    weights = np.arange(32).reshape(8, 4) / 8
    for to in ("f16", "f64", "i64", "i16", "u32", "u16"):
        inner = ops.convert(x, to)
        added = ops.add(inner, ops.constant(np.ones((1, 8), TYPES[to])))
        made = ops.matmul(ops.convert(added, "f32"), ops.constant(np.float32(weights)), False, False)
        model = model_of([ops.convert(made, "f8e5m2")], [x])
        assert use_tensorcast(model) == (2 if to in ("i16", "u16") else 1)
        given = np.float32(np.arange(16).reshape(2, 8))
        assert np.array_equal(run(model, given)[0].view(np.uint8),
                              tc.cast((given + 1) @ np.float32(weights), "float8_e5m2").view(np.uint8))  # fmt: skip
