# SPDX-License-Identifier: Apache-2.0
"""tc.promote_types against the packages whose rules it follows: every pair of types, every option."""

import itertools
import pathlib
import re

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError

RULES = ["openvino", "numpy", "torch", "jax", "jax_strict", "tensorflow"]
# Newer than the rules, or unknown to all of their owners: refused by all of them.
NOWHERE = ["float6_e2m3fn", "float6_e3m2fn", "float8_e5m3fnu", "binary8p4se", "binary8p3se"]
ONLY_ML_DTYPES = ["float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz"]
NAMES = [row.name for row in tc.dtypes() if row.name not in ("string", *NOWHERE)] + ["uint1"]
REFUSED = "refused"


def ours(a, b, **options):
    try:
        return tc.promote_types(a, b, **options)
    except CastError as error:
        assert error.code == "unsupported"
        return REFUSED


def numpy_type(name):
    return np.dtype(name) if hasattr(np, name) else np.dtype(getattr(ml_dtypes, name))


def disagreements(names, theirs, **options):
    wrong = {}
    for a, b in itertools.product(names, names):
        try:
            expected = theirs(a, b)
        except (TypeError, RuntimeError, ValueError, NotImplementedError):
            expected = REFUSED
        if ours(a, b, **options) != expected:
            wrong[a, b] = ours(a, b, **options), expected
    return wrong


@pytest.mark.parametrize("rules", RULES)
def test_types_of_nobody_are_refused(rules):
    for a, b in itertools.product(NOWHERE, [*NAMES, *NOWHERE]):
        if a != b:
            assert ours(a, b, rules=rules) == ours(b, a, rules=rules) == REFUSED


def test_numpy():
    names = [name for name in NAMES if name != "uint1"]
    assert len(names) == 26
    assert not disagreements(names, lambda a, b: np.promote_types(numpy_type(a), numpy_type(b)).name, rules="numpy")


@pytest.mark.parametrize("rules", ["jax", "jax_strict"])
def test_jax(rules):
    jax = pytest.importorskip("jax")
    names = [name for name in NAMES if name != "uint1"]
    mode = {"jax": "standard", "jax_strict": "strict"}[rules]
    with jax.enable_x64(True), jax.numpy_dtype_promotion(mode):
        wrong = disagreements(
            names, lambda a, b: jax.numpy.promote_types(numpy_type(a), numpy_type(b)).name, rules=rules
        )
    assert not wrong


TORCH_NAMES = [name for name in NAMES if name not in ("float4_e2m1fn", *ONLY_ML_DTYPES)]  # a torch type of float4 is two


def torch_name(dtype):
    return str(dtype).removeprefix("torch.")


def torch_type(name):
    return getattr(pytest.importorskip("torch"), name)


def test_torch():
    torch = pytest.importorskip("torch")
    wrong = disagreements(
        TORCH_NAMES, lambda a, b: torch_name(torch.promote_types(torch_type(a), torch_type(b))), rules="torch"
    )
    assert not wrong


@pytest.mark.parametrize("scalars", itertools.product([False, True], repeat=2))
def test_torch_tensors_and_scalars(scalars):
    torch = pytest.importorskip("torch")

    def result_type(a, b):
        tensors = [torch.empty(() if scalar else (2,), dtype=torch_type(name)) for name, scalar in zip((a, b), scalars)]
        return torch_name(torch.result_type(*tensors))

    options = dict(zip(("a_is_scalar", "b_is_scalar"), scalars), rules="torch")
    assert not disagreements(TORCH_NAMES, result_type, **options)


OPENVINO = dict(
    float64="f64", float32="f32", float16="f16", bfloat16="bf16", float8_e4m3fn="f8e4m3", float8_e5m2="f8e5m2",
    int64="i64", int32="i32", int16="i16", int8="i8", int4="i4", uint64="u64", uint32="u32", uint16="u16", uint8="u8",
    uint4="u4", bool="boolean", uint1="u1",
)  # fmt: skip
OUTSIDE = dict(float8_e8m0fnu="f8e8m0", float4_e2m1fn="f4e2m1", uint2="u2", string="string")

# (scalar, tensor): OpenVINO's code gives the tensor's type, its text demands an error. docs/promotion.md has them too.
CODE_AGAINST_TEXT = {
    ("uint4", "int4"), ("uint8", "int4"), ("uint8", "int8"), ("uint16", "int8"), ("uint16", "int16"),
    ("uint32", "int16"), ("uint32", "int32"), ("uint64", "int32"), ("uint64", "int64"), ("bfloat16", "float16"),
    ("float8_e5m2", "float8_e4m3fn"),
}  # fmt: skip


def openvino_types(a, b, scalars, promote_unsafe, scalar_promotion, target="f32"):
    """OpenVINO's type of both outputs."""
    ov = pytest.importorskip("openvino")
    from openvino import opset14

    spelling = OPENVINO | OUTSIDE
    operands = [
        opset14.parameter([] if scalar else [2, 3], getattr(ov.Type, spelling[name]))
        for name, scalar in zip((a, b), scalars)
    ]
    node = opset14.convert_promote_types(*operands, promote_unsafe, scalar_promotion, target)
    first, second = (node.output(i) for i in (0, 1))
    assert first.get_element_type() == second.get_element_type()
    assert [list(output.get_shape()) for output in (first, second)] == [[] if scalar else [2, 3] for scalar in scalars]
    short = first.get_element_type().to_string()
    return next(name for name, spelled in spelling.items() if spelled == short)


@pytest.mark.parametrize("scalar_promotion", [False, True])
@pytest.mark.parametrize("promote_unsafe", [False, True])
@pytest.mark.parametrize("scalars", itertools.product([False, True], repeat=2))
def test_openvino(scalars, promote_unsafe, scalar_promotion):
    wrong = disagreements(
        list(OPENVINO),
        lambda a, b: openvino_types(a, b, scalars, promote_unsafe, scalar_promotion),
        a_is_scalar=scalars[0],
        b_is_scalar=scalars[1],
        promote_unsafe=promote_unsafe,
        pytorch_scalar_promotion=scalar_promotion,
    )
    expected = {}
    if scalar_promotion and not promote_unsafe and scalars[0] != scalars[1]:
        for scalar, tensor in CODE_AGAINST_TEXT:
            expected[(scalar, tensor) if scalars[0] else (tensor, scalar)] = REFUSED, tensor
    assert wrong == expected


@pytest.mark.parametrize("target", [name for name in OPENVINO if name != "uint1"])
def test_openvino_target_of_u64(target):
    for signed in ("int64", "int32", "int16", "int8", "int4"):
        theirs = openvino_types("uint64", signed, (False, False), True, False, OPENVINO[target])
        assert ours("uint64", signed, promote_unsafe=True, u64_integer_promotion_target=target) == theirs == target


def test_openvino_types_outside_its_list():
    for name in OUTSIDE:
        with pytest.raises(RuntimeError):
            openvino_types(name, "float32", (False, False), True, False)
        assert ours(name, "float32", promote_unsafe=True) == REFUSED


def test_the_page_lists_the_eleven():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/promotion.md").read_text()
    rows = re.findall(r"^\| (\w+) \| (\w+) \| refused \| (\w+) \|$", page, re.MULTILINE)
    assert {(scalar, tensor) for scalar, tensor, _ in rows} == CODE_AGAINST_TEXT and len(rows) == 11
    assert all(tensor == given for _, tensor, given in rows)


@pytest.mark.parametrize("rules", RULES)
def test_every_refusal_says_what_to_do(rules):
    for a, b in itertools.product(NAMES, NAMES):
        try:
            tc.promote_types(a, b, rules=rules)
        except CastError as error:
            assert "; " in str(error) and a in str(error), str(error)


def test_arguments():
    with pytest.raises(CastError, match="known are openvino, numpy"):
        tc.promote_types("int8", "int8", rules="mxnet")
    with pytest.raises(
        CastError, match="float16 cannot hold int64 safely: needs at least 128 bits; promote_unsafe=True"
    ):
        tc.promote_types("float16", "int64")


def test_arrays():
    a, b = np.array([[-3], [7]], np.int8), np.array([0, 200, 255], np.uint8)
    first, second = tc.promote(a, b, promote_unsafe=True)
    assert first.dtype == second.dtype == np.int16
    assert first.tolist() == [[-3], [7]] and second.tolist() == [0, 200, 255]
    with pytest.raises(CastError, match="int8 cannot hold uint8 safely: needs int16"):
        tc.promote(a, b)


def test_what_has_the_type_is_the_same_object():
    a, b = np.float32([1.5]), np.int16(9)
    first, second = tc.promote(a, b)
    assert first is a and second.shape == () and second == 9.0
    assert all(x is y for x, y in zip(tc.promote(a, a), (a, a)))
    scalar = np.float32(2)
    assert tc.promote(scalar, a)[0] is scalar


def test_rank_zero_is_the_scalar_of_the_rules():
    options = {"promote_unsafe": True, "pytorch_scalar_promotion": True}
    wide, narrow = np.array(300), np.array([1], np.uint8)
    first, second = tc.promote(wide, narrow, **options)
    assert first.dtype == np.uint8 and first.shape == () and first == 44 and second is narrow
    assert tc.promote(wide.reshape(1), narrow, **options)[1].dtype == np.int64


def test_other_rules_and_cast_options():
    a, b = np.int32([1 << 24 | 1]), np.float32([0.5])
    assert tc.promote(a, b, rules="numpy")[0].dtype == np.float64
    assert tc.promote(a, b, rules="torch")[0].tolist() == [2.0**24]
    first, second = tc.promote(np.uint64([3]), np.int8([-1]), promote_unsafe=True, u64_integer_promotion_target="uint8")
    assert first.tolist() == [3] and second.tolist() == [255]
    nibbles = np.array([1, -8], ml_dtypes.int4)
    assert tc.promote(nibbles, ml_dtypes.bfloat16(1.5))[0].dtype == ml_dtypes.bfloat16
    for name in ("out", "packed", "from_", "copy", "nonsense"):
        with pytest.raises(TypeError, match=name):
            tc.promote(a, b, **{name: None})


def test_tensors():
    torch = pytest.importorskip("torch")
    a, b = torch.tensor([1.5], dtype=torch.bfloat16), torch.tensor(3, dtype=torch.int8)
    first, second = tc.promote(a, b)
    assert first is a and second.dtype == torch.bfloat16 and second.shape == ()
    mixed = tc.promote(a, np.float32([[2]]))
    assert mixed[0].dtype == torch.float32 and isinstance(mixed[1], np.ndarray)


@pytest.mark.parametrize("bad", [[1, 2], object(), "text", None])
def test_what_is_no_array(bad):
    with pytest.raises(TypeError):
        tc.promote(bad, np.int8([1]))
