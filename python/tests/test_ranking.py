# SPDX-License-Identifier: Apache-2.0
"""inspect(stats=True, candidates=...): each number of each scheme recomputed with NumPy from quantize() and dequantize()."""

import block_samples as samples
import numpy as np
import pytest

import tensorcast as tc

RECIPES = [f"{row['scheme']}:{row['recipe']}" for row in tc.recipes()]
SPELLINGS = {(row["scheme"], row["recipe"]): row["spelling"] for row in tc.recipes()}
LARGEST = {"mxfp8": 0x7E, "mxfp8-e5m2": 0x7B, "mxfp6": 31, "mxfp6-e3m2": 31, "mxfp4": 7, "nvfp4": 7, "fp8-tensor": 0x7E,
           "fp8-channel": 0x7E, "fp8-block": 0x7E}  # fmt: skip


@pytest.fixture(scope="module")
def weights():
    made = {f"{name} {dtype}": samples.sample(name, dtype) for name in ("weights", "zeros") for dtype in samples.DTYPES}
    x = samples.sample("weights", "float32")
    # Several matrices, many rows, one row, and sizes that no block divides.
    return made | {"experts": x[:120, :192].reshape(3, 40, 192).copy(), "tall": np.tile(x, (9, 1))[:1099].copy(),
                   "row": x[0].copy(), "odd": x[:37, :77].copy()}  # fmt: skip


@pytest.fixture(scope="module")
def path(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("ranking") / "weights.safetensors"
    tc.save(path, weights)
    return path


def decoded(x, fit):
    """The numbers, the bytes, and the codes one a byte (None: of GGUF)."""
    if fit.scheme.startswith(("q", "iq")):
        made = tc.gguf_quantize(x, fit.scheme)
        return tc.dequantize(made, None, fit.scheme, spelling="gguf", dtype="float32").reshape(x.shape), made.nbytes, None
    q = tc.quantize(x, fit.scheme, recipe=fit.recipe)
    scales = q.scales
    if x.dtype.itemsize == 2 and scales.dtype == np.float32 and SPELLINGS[fit.scheme, fit.recipe] == "compressed-tensors":
        scales = q.spelled("compressed-tensors")["weight_scale"]  # perhaps in the weights' type
    size = q.codes.nbytes + scales.nbytes + (0 if q.global_scale is None else 4)
    return q.dequantize("float32"), size, q.element_codes()


def test_every_number_is_numpys(weights, path):
    compared = 0
    for tensor in tc.inspect(path, stats=True, candidates=RECIPES).tensors:
        x = weights[tensor.name]
        assert [f"{fit.scheme}:{fit.recipe}" for fit in tensor.stats.schemes] == RECIPES
        exact = x.astype(np.float64)
        for fit in tensor.stats.schemes:
            if fit.problem:
                assert "blocks" in fit.problem or "NaN" in fit.problem
                continue
            numbers, size, codes = decoded(x, fit)
            error = exact - numbers
            assert fit.signal_power == pytest.approx((exact**2).sum(), rel=1e-9)
            assert fit.noise_power == pytest.approx((error**2).sum(), rel=1e-9)
            assert fit.max_abs_error == np.abs(error).max()
            assert fit.bits == pytest.approx(8 * size / x.size, rel=1e-12)
            assert fit.became_zero == ((numbers == 0) & (exact != 0)).sum()
            if fit.scheme in LARGEST:
                sign = {"mxfp6": 32, "mxfp6-e3m2": 32, "mxfp4": 8, "nvfp4": 8}.get(fit.scheme, 128)
                top = (codes & (sign - 1)) == LARGEST[fit.scheme]
                assert fit.saturated == (top & (np.abs(exact) > np.abs(numbers))).sum()
            compared += 1
    assert compared > 450


def test_threads_change_nothing(path):
    one, four = (tc.inspect(path, stats=True, candidates=["nvfp4", "fp8_block", "q4-k"], threads=n) for n in (1, 4))
    assert one == four
    names = [[fit.scheme for fit in tensor.stats.schemes] for tensor in one.tensors]
    assert names == [["nvfp4", "fp8-block", "q4_k"]] * len(names)


def test_schemes_beside_types(path):
    tensor = tc.inspect(path, stats=True, candidates=["float16", "mxfp4:even"]).tensors[0]
    assert list(tensor.stats.candidates) == ["float16"]
    assert [fit.recipe for fit in tensor.stats.schemes] == ["even"]
    assert tensor.stats.schemes[0].snr_db < tensor.stats.candidates["float16"].snr_db


def test_what_is_no_scheme(path, tmp_path):
    with pytest.raises(tc.CastError, match='mxfp4 has no recipe "evn"; write one of rceil'):
        tc.inspect(path, stats=True, candidates=["mxfp4:evn"])
    tc.save(tmp_path / "odd.safetensors", {"nan": np.array([1, np.nan], np.float32), "integers": np.arange(4)})
    found = {tensor.name: tensor.stats for tensor in tc.inspect(tmp_path / "odd.safetensors", stats=True,
                                                                candidates=["nvfp4"]).tensors}  # fmt: skip
    assert found["nan"].schemes[0].problem == "the weight has NaN or infinity"
    assert found["integers"].schemes == ()
