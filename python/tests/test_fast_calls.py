# SPDX-License-Identifier: Apache-2.0
"""Calls that the module answers without Python: out=, report= and arrays of scales give what the general calls give."""

import itertools
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tensorcast as tc

NARROW = ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m2fnuz"]
OPTIONS = [
    {},
    {"rounding": "toward_zero"},
    {"rounding": "nearest_away"},
    {"rounding": "to_odd"},
    {"saturate": False},
    {"out_of_range": "error"},
    {"opset": 19},
    {"inexact": "error"},
]


def outcome(work):
    try:
        return work().tobytes()
    except tc.CastError as error:
        return type(error).__name__


def arrays(source, seed):
    """Numbers of all bits with scales of all exponents, and usual numbers with float32's scales."""
    rng = np.random.default_rng(seed)
    dtype = tc.cast(np.zeros(1, np.float32), source).dtype
    codes = rng.integers(0, 256, 64 * dtype.itemsize, dtype=np.uint8).view(dtype)
    wide = np.ldexp(rng.uniform(1, 2, 64), rng.integers(-400, 400, 64)) * rng.choice([-1, 1], 64)
    usual = tc.cast(rng.standard_normal(64).astype(np.float32), source)
    near = rng.uniform(0.1, 9, 64)
    zeros = np.zeros(64, np.float32).astype(dtype)
    yield from ((codes, wide), (usual, near), (usual, near.astype(np.float32).astype(np.float64)), (zeros, -near))


@pytest.mark.parametrize("source", NARROW)
def test_a_scale_for_each_element_is_that_of_one_element(source):
    for (to, options), (x, scale) in itertools.product(itertools.product(NARROW, OPTIONS), arrays(source, 7)):
        singly = [outcome(lambda i=i: tc.cast(x[i : i + 1], to, scale=float(scale[i]), **options)) for i in range(64)]
        failed = [one for one in singly if isinstance(one, str)]
        together = outcome(lambda: tc.cast(x, to, scale=scale, **options))
        assert together == (failed[0] if failed else b"".join(singly)), (to, options)


@pytest.mark.parametrize("shape", [(3, 5, 257), (4100, 3), (2, 2049)])
def test_scales_of_any_strides(shape):
    rng = np.random.default_rng(8)
    x = rng.standard_normal(shape).astype(np.float32)
    x.ravel()[::97] = np.inf
    scale = rng.uniform(0.5, 2, shape)
    want = np.array([tc.cast(one, "float16", scale=float(by)) for one, by in zip(x.ravel(), scale.ravel(), strict=True)])
    want = want.reshape(shape)
    for turned in (scale, np.asfortranarray(scale), np.flip(np.flip(scale).copy())):
        np.testing.assert_array_equal(tc.cast(x, "float16", scale=turned), want)
        np.testing.assert_array_equal(tc.cast(x.T, "float16", scale=turned.T), want.T)
        np.testing.assert_array_equal(tc.cast(x[..., ::-1], "float16", scale=turned[..., ::-1]), want[..., ::-1])
    narrow = scale.astype(np.float32)
    np.testing.assert_array_equal(
        tc.cast(x, "float16", scale=narrow), tc.cast(x, "float16", scale=narrow.astype(np.float64))
    )


def test_out_is_the_result_and_keeps_its_rules():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    out = np.zeros((2, 3, 4), np.float16)
    assert tc.cast(x, "float16", out=out) is out
    np.testing.assert_array_equal(out, x)
    turned = np.zeros((4, 3, 2), np.float16).T
    assert tc.cast(x, "float16", out=turned) is turned
    np.testing.assert_array_equal(turned, x)
    same = x.copy()
    assert tc.cast(same, "float32", out=same, scale=2.0) is same
    np.testing.assert_array_equal(same, 2 * x)
    both = tc.cast(x, "float16", out=out, report=True, scale=1e9)
    assert both[0] is out
    assert both[1].overflowed == 23
    assert np.isinf(out).sum() == 23
    out.flags.writeable = False
    for wrong in (out, np.zeros((2, 3, 5), np.float16), np.zeros((2, 3, 4), np.float32), x.view(np.float16)[..., :4]):
        with pytest.raises(tc.CastError):
            tc.cast(x, "float16", out=wrong)
    with pytest.raises(TypeError):
        tc.cast(x, "float16", out=[0.0])
    with pytest.raises(tc.OutOfRangeError):
        tc.cast(x, "int8", scale=100.0, out_of_range="error", out=np.zeros(x.shape, np.int8))


def test_reports_are_those_of_the_general_call():
    rng = np.random.default_rng(9)
    x = (rng.standard_normal((50, 60)) * 1e5).astype(np.float32)
    for options in ({}, {"scale": 0.5}, {"rounding": "toward_zero"}, {"scale": rng.uniform(1, 2, (50, 1))}):
        result, report = tc.cast(x, "float16", report=True, **options)
        _, general = tc.cast(x, "float16", report=True, order="C", **options)
        assert report == general
        assert report.count == 3000
        kept, made, scale = report._compared
        assert isinstance(kept, weakref.ref)
        assert kept() is x
        assert made() is result
        assert isinstance(scale, np.ndarray) or scale == options.get("scale", 1.0)
    assert isinstance(tc.cast(x, "float16", report=False), np.ndarray)


@pytest.mark.parametrize("source", ["int8", "float16", "float32", "float64"])
def test_transposed_arrays_are_those_of_a_copy(source):
    rng = np.random.default_rng(10)
    shapes = (((1027, 641), (1, 0)), ((7, 257, 131), (2, 0, 1)), ((40000, 3), (1, 0)), ((3, 17, 5, 331), (3, 1, 0, 2)))
    for shape, order in shapes:
        x = tc.cast(rng.integers(0, 7, shape).astype(np.float32), source).transpose(order)
        for view, to in itertools.product((x, x[::-1], x[..., ::-1]), ("uint8", "bfloat16", "float32", "int64", "int4")):
            want = tc.cast(np.ascontiguousarray(view), to).tobytes()
            assert tc.cast(view, to).tobytes() == want
            assert tc.cast(view, to, threads=1).tobytes() == want


def test_the_first_cast_of_a_tensor_imports_what_it_needs():
    """The classes of results of files take 13 ms to import, a cast of a million elements one."""
    pytest.importorskip("torch")
    code = (
        "import sys, torch, tensorcast as tc\n"
        "before = set(sys.modules)\n"
        "assert tc.cast(torch.ones(3), 'bfloat16').dtype == torch.bfloat16\n"
        "print([name for name in ('_results', '_requests', '_convert_options') if 'tensorcast.' + name in sys.modules])\n"
        "print([name for name in set(sys.modules) - before if name.startswith(('tensorcast', 'numpy', 'ml_dtypes'))])"
    )
    for imports in ("import sys, torch, tensorcast as tc", "import sys, tensorcast as tc, torch"):
        each = code.replace("import sys, torch, tensorcast as tc", imports)
        done = subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout == "[]\n[]\n"
