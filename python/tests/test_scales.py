# SPDX-License-Identifier: Apache-2.0
"""scale= with an array: each element times its own scale, rounded once."""

import ml_dtypes
import numpy as np
import pytest
from arrays import codes

import tensorcast as tc

X = np.random.default_rng(3).normal(0, 40, (6, 5, 7)).astype(np.float32)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 1), (6, 1, 1), (1, 5, 7), (6, 5, 7), (6, 1, 7)])
@pytest.mark.parametrize("to", ["float8_e4m3fn", "int8", "int4", "float16", "float64"])
def test_scales_equal_one_scale_each(shape, to):
    scales = np.random.default_rng(4).uniform(0.1, 3, shape)
    result = tc.cast(X, to, scale=scales)
    flat = tc.cast(X.reshape(-1), to, scale=np.broadcast_to(scales, X.shape).reshape(-1))
    assert result.shape == X.shape and np.array_equal(codes(result).ravel(), codes(flat))
    singly = np.concatenate(
        [
            codes(tc.cast(X.reshape(-1)[i : i + 1], to, scale=float(s)))
            for i, s in enumerate(np.broadcast_to(scales, X.shape).ravel())
        ]
    )
    assert np.array_equal(codes(result).ravel(), singly)


def test_one_rounding():
    """0.1 is not a float32: a product that was rounded before would differ."""
    x = np.float32([1.0000001] * 3)
    scale = np.float64([0.99999994, 1 / 3, 0.1])
    exact = x.astype(np.longdouble) * scale
    result = tc.cast(x, "float32", scale=scale)
    assert np.array_equal(result, exact.astype(np.float32))
    codes_of_int4 = tc.cast(np.array([3, -5], ml_dtypes.int4), "float32", scale=[0.5, 2])
    assert codes_of_int4.tolist() == [1.5, -10]


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x.astype(">f4"), lambda x: x[:0]])
def test_layouts_and_order(view):
    x = view(X)
    scales = np.linspace(0.5, 2, x.shape[1])[:, None]
    plain = tc.cast(np.array(x, np.float32, order="C"), "float16", scale=scales)
    assert np.array_equal(tc.cast(x, "float16", scale=scales), plain)
    kept = tc.cast(x, "float16", scale=scales, order="K")
    assert np.array_equal(kept, plain) and kept.strides == np.empty_like(x, np.float16, order="K").strides
    out = np.empty(x.shape, np.float16)
    assert tc.cast(x, "float16", scale=scales, out=out) is out and np.array_equal(out, plain)


def test_reports_and_packed_results():
    scales = np.float32([1, 100, 1e6])[:, None]
    x = np.ones((3, 4), np.float32)
    result, report = tc.cast(x, "float8_e4m3fn", scale=scales, report=True)
    assert (report.count, report.saturated, report.inexact) == (12, 4, 8)
    assert result[:, 0].astype(np.float32).tolist() == [1, 96, 448]
    packed = tc.cast(x, "int4", scale=[1, 2, 3, 4], packed=True)
    assert packed.tolist() == [0x21, 0x43] * 3
    with pytest.raises(ValueError, match="scale= is one number"):
        tc.cast(packed, "float32", packed=True, from_="int4", scale=[1, 2, 3])


def test_the_first_element_that_fails_is_named():
    x = np.zeros((4, 5), np.float32)
    x[1, 3] = x[2, 0] = 1000
    for scale in (np.ones(5), np.ones((4, 1)), np.ones((4, 5))):
        with pytest.raises(tc.OutOfRangeError, match="element 8:") as caught:
            tc.cast(x, "int8", scale=scale, out_of_range="error")
        assert caught.value.index == 8


@pytest.mark.parametrize(
    "scale, kind, words",
    [
        (np.ones(4), tc.CastError, r"scale= has shape \(4,\), which does not broadcast to \(6, 5, 7\)"),
        (np.ones(6), tc.CastError, r"write scale\[:, None\]"),
        (np.array([1, np.inf, 1, 1, 1, 1, 1]), tc.CastError, "scale"),
        (["a"], TypeError, "scale must be a real number or an array of them"),
        (np.complex64([1]), TypeError, "real number"),
        ("2", TypeError, "real number"),
    ],
)
def test_wrong_scales(scale, kind, words):
    with pytest.raises(kind, match=words):
        tc.cast(X, "float16", scale=scale)


def test_where_one_scale_is_wanted(tmp_path):
    with pytest.raises(ValueError, match="no array as scale="):
        tc.cast(np.array(["1", "2"]), "float32", scale=[1, 2])
    tc.save(tmp_path / "x.npy", {"x": X})
    with pytest.raises(TypeError, match="scale must be a real number here"):
        tc.convert(tmp_path / "x.npy", tmp_path / "y.npy", "float16", scale=[1, 2])


def test_tiles():
    """Larger than a tile, with edges that tiles do not divide; every kind of memory."""
    x = np.random.default_rng(5).normal(0, 3, (3, 300, 401)).astype(np.float32)
    scales = np.random.default_rng(6).uniform(0.5, 2, (3, 300, 401))
    nibbles = tc.cast(x, "int4")
    for source in (x, x.astype(">f4"), nibbles):
        plain = tc.cast(source, "float64")
        for shape in (np.s_[:1, :1, :], np.s_[:, :1, :], np.s_[:1, :, :1], np.s_[:, :, :], np.s_[:, :1, :1]):
            expected = plain * scales[shape]
            assert np.array_equal(tc.cast(source, "float64", scale=scales[shape]), expected)
            flipped = tc.cast(source.transpose(2, 0, 1), ">f8", scale=scales[shape].transpose(2, 0, 1))
            assert np.array_equal(flipped, expected.transpose(2, 0, 1))
            narrow, report = tc.cast(source, "int2", scale=scales[shape], report=True)
            assert report.count == x.size and np.array_equal(codes(narrow), codes(tc.cast(expected, "int2")))


def test_out_does_not_overlap():
    x = np.ones((4, 4), np.float32)
    with pytest.raises(tc.CastError, match="overlaps the input"):
        tc.cast(x, "float32", scale=[1, 2, 3, 4], out=x)
    assert (x == 1).all()


def test_numbers_of_every_kind_are_one_scale():
    for scale in (2, 2.0, np.float32(2), np.int8(2), np.array(2.0), ml_dtypes.bfloat16(2), True):
        assert tc.cast(np.float32([3]), "float16", scale=scale).tolist() == [3.0 if scale is True else 6.0]


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for scale in (torch.tensor([[2.0], [0.5]]), np.float32([[2], [0.5]]), [[2], [0.5]]):
        result = tc.cast(x, "bfloat16", scale=scale)
        assert result.dtype == torch.bfloat16 and result.tolist() == [[2, 4], [1.5, 2]]
    with pytest.raises(tc.CastError, match=r"scale.detach\(\)"):
        tc.cast(x, "bfloat16", scale=torch.tensor([2.0, 1.0], requires_grad=True))
