# SPDX-License-Identifier: Apache-2.0
"""quantize(clip="mse"): each scale recomputed with NumPy, as the best of the recipe's and 32 smaller ones."""

import block_samples as samples
import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc

F32 = np.float32
FP4, FP8 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn
STEPS = [F32(1) - F32(step) / F32(64) for step in range(33)]


def blocks_of(x, size):
    """[rows, blocks, size], with zeros behind the last column."""
    padded = np.pad(x, [(0, 0), (0, -x.shape[1] % size)])
    return padded.reshape(len(x), -1, size)


def best(x, importance, attempt):
    """Of the attempts at blocks, the numbers and scale of the first with the least sum of squared errors."""
    least, found = np.full(x.shape[:2], np.inf), None
    for factor in STEPS:
        tried = attempt(factor)
        error = x.astype(np.float64) - tried[0].astype(np.float64)
        total = np.cumsum(importance * (error * error), axis=-1)[..., -1]
        better = total < least
        found = tried if found is None else [np.where(better[..., None], new, old) for new, old in zip(tried, found, strict=True)]
        least = np.where(better, total, least)
    return found


def attempts(scheme, x, g):
    largest = np.abs(x).max(-1, keepdims=True)
    low, high = np.minimum(x.min(-1, keepdims=True), 0), np.maximum(x.max(-1, keepdims=True), 0)

    def integers(factor, bits=4):
        top = F32(1 << (bits - 1))
        s = largest * factor / (top - F32(0.5))
        s = np.where(s == 0, F32(2**-23), s)
        return [np.clip(np.rint(x / s), -top, top - 1) * s, s]

    def asymmetric(factor):
        s = (high * factor - low * factor) / F32(15)
        z = np.clip(np.rint(F32(-8) - low * factor / s), -8, 7)
        return [(np.clip(np.rint(x / s + z), -8, 7) - z) * s, s]

    def float8(factor):
        s = largest * factor / F32(448)
        return [np.clip(x / s, -448, 448).astype(FP8).astype(F32) * s, s]

    def mxfp4(factor):
        fraction, exponent = np.frexp(largest * factor * (F32(1) / F32(6)))
        s = np.ldexp(F32(1), exponent - (fraction == 0.5)).astype(F32)
        return [np.clip(x / s, -6, 6).astype(FP4).astype(F32) * s, s]

    def nvfp4(factor):
        s = np.clip(largest * factor / (F32(6) * g), F32(2**-9), F32(448)).astype(FP8).astype(F32)
        return [np.clip(x / (s * g), -6, 6).astype(FP4).astype(F32) * (s * g), s]

    return {"int4-group": integers, "int8-channel": lambda factor: integers(factor, 8), "fp8-channel": float8, "mxfp4": mxfp4,
            "nvfp4": nvfp4, "asymmetric": asymmetric}[scheme]  # fmt: skip


def numbers_of_scales(q):
    if q.scheme == "mxfp4":
        return np.ldexp(F32(1), q.scales.astype(np.int32) - 127)
    return q.scales.view(FP8).astype(F32) if q.scheme == "nvfp4" else q.scales


BLOCKS = {"int4-group": 128, "asymmetric": 128, "mxfp4": 32, "nvfp4": 16, "int8-channel": 512, "fp8-channel": 512}


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("scheme", BLOCKS)
def test_scales_are_numpys(scheme, weighed):
    x = samples.sample("weights", "float32")
    importance = samples.importance(x.shape[1]) if weighed else None
    q = tc.quantize(x, scheme.replace("asymmetric", "int4-group"), clip="mse", importance=importance,
                    symmetric=scheme != "asymmetric")  # fmt: skip
    blocks = blocks_of(x, BLOCKS[scheme])
    weights = np.ones(x.shape[1]) if importance is None else importance.astype(np.float64)
    numbers, scales = best(blocks, blocks_of(weights[None], BLOCKS[scheme]), attempts(scheme, blocks, F32(np.abs(x).max() / F32(2688))))
    np.testing.assert_array_equal(numbers_of_scales(q), scales[..., 0])
    np.testing.assert_array_equal(q.dequantize(), numbers.reshape(len(x), -1)[:, : x.shape[1]])
    plain = tc.quantize(x, q.scheme, symmetric=scheme != "asymmetric")
    error = [float((weights * (x.astype(np.float64) - made.dequantize()) ** 2).sum()) for made in (q, plain)]
    assert error[0] < error[1]


def test_blocks_of_rows():
    """Of fp8-block, whose blocks are 128 x 128, and end at the matrix's edge."""
    x = samples.sample("weights", "float32")[:100, :200].copy()
    q = tc.quantize(x, "fp8-block", clip="mse")
    for column in (0, 128):
        block = x[:, column : column + 128]
        flat = block.reshape(1, 1, -1)
        _, scales = best(flat, np.ones(1), attempts("fp8-channel", flat, None))
        assert q.scales[0, column // 128] == scales[0, 0, 0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("recipe", [f"{row['scheme']}:{row['recipe']}" for row in tc.recipes()])
def test_no_recipe_loses_more(recipe, dtype):
    scheme, name = recipe.split(":")
    x = samples.sample("normal", dtype)
    if name == "ggml" and scheme.startswith(("q", "iq")):
        with pytest.raises(tc.CastError, match="has a search of its own, and no clipping"):
            tc.quantize(x, scheme, clip="mse")
    elif scheme == "fp8-tensor":
        with pytest.raises(tc.CastError, match="has one scale for the whole tensor, which is not searched"):
            tc.quantize(x, scheme, recipe=name, clip="mse")
    else:
        numbers = x.astype(np.float64)
        searched, plain = (((numbers - tc.quantize(x, scheme, recipe=name, clip=clip).dequantize()) ** 2).sum()
                           for clip in ("mse", "none"))  # fmt: skip
        assert searched <= plain
        if scheme == "int4-group":
            assert searched < 0.95 * plain


def test_special_blocks():
    zeros = tc.quantize(np.zeros((2, 64), np.float32), "mxfp4", clip="mse")
    np.testing.assert_array_equal(zeros.scales, 127)
    x = np.ones((2, 64), np.float32)
    x[0, 3] = np.inf
    with pytest.raises(tc.OutOfRangeError):
        tc.quantize(x, "mxfp4", clip="mse")
    assert tc.quantize(x, "mxfp4", clip="mse", nonfinite="tool").dequantize()[1].tolist() == [1.0] * 64


@pytest.mark.parametrize("importance, complaint", [
    (np.ones(63, np.float32), "importance of 63 numbers, where the weight has 64 columns"),
    (np.full(64, -1.0, np.float32), "importance that is negative, NaN or infinite"),
    (np.full(64, np.nan, np.float32), "importance that is negative, NaN or infinite"),
])  # fmt: skip
def test_wrong_importance(importance, complaint):
    with pytest.raises(tc.CastError, match=complaint):
        tc.quantize(np.ones((2, 64), np.float32), "mxfp4", clip="mse", importance=importance)
    with pytest.raises(ValueError, match="clip must be one of 'none', 'mse', not 'max'"):
        tc.quantize(np.ones((2, 64), np.float32), "mxfp4", clip="max")


def test_importance_of_each_matrix():
    x = np.ascontiguousarray(samples.sample("weights", "float32")[:12, :256].reshape(3, 4, 256))
    importance = samples.importance(3 * 256).reshape(3, 256)
    whole = tc.quantize(x, "int4-group", clip="mse", importance=importance)
    for i in range(3):
        alone = tc.quantize(x[i], "int4-group", clip="mse", importance=importance[i])
        np.testing.assert_array_equal(whole.scales[i], alone.scales)
    rows = tc.gguf_quantize(x, "q4_k", importance=importance)
    for i in range(3):
        np.testing.assert_array_equal(rows[i], tc.gguf_quantize(x[i], "q4_k", importance=importance[i]))


@pytest.mark.parametrize("to, spelling", [("nvfp4", "modelopt"), ("int4-group", "compressed-tensors")])
def test_files(tmp_path, to, spelling):
    name = "model.layers.0.mlp.down_proj.weight"
    x = samples.sample("weights", "bfloat16")
    tc.save(tmp_path / "in.safetensors", {name: x})
    done = tc.convert(tmp_path / "in.safetensors", tmp_path / "out.safetensors", to, spelling=spelling, clip="mse", verify=True)
    (codes,) = (tensor for tensor in done.tensors if tensor.recipe)
    assert codes.search == "clip mse" and ", clip mse as " in codes.reason
    q = tc.quantize(x, to, clip="mse", recipe=codes.recipe)
    made = tc.load(tmp_path / "out.safetensors")
    for suffix, tensor in q.spelled(spelling).items():
        assert np.asarray(made[name.removesuffix("weight") + suffix]).tobytes() == np.asarray(tensor).tobytes()
    with pytest.raises(tc.CastError, match="`?clip=?`? is of use with a scheme only"):
        tc.convert(tmp_path / "in.safetensors", tmp_path / "no.safetensors", "float16", clip="mse")
