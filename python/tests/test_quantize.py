# SPDX-License-Identifier: Apache-2.0
"""Recipes against digests of what the tools wrote (block_tools.py makes them), and against NumPy where a GPU is the tool."""

import copy
import gc
import inspect
import json
import pathlib
import pickle

import block_samples as samples
import ml_dtypes
import numpy as np
import pytest
import recipe_page
import torch

import tensorcast as tc

F32 = np.float32
DIGESTS = json.loads((pathlib.Path(__file__).parent / "recipe_digests.json").read_text())
RECIPES = {(row["scheme"], row["recipe"]): row for row in tc.recipes()}


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


def parts_of(x, scheme, recipe, **options):
    if scheme.startswith(("q", "iq")):
        weights = samples.importance(x.shape[1]) if options.get("importance") else None
        return {"codes_of_gguf": tc.gguf_quantize(x, scheme, importance=weights)}
    q = tc.quantize(x, scheme, recipe=recipe, **options)
    g = None if q.global_scale is None else np.array([q.global_scale], F32)
    return {"codes": q.element_codes(), "scales": q.scales, "zero_points": q.zero_points, "global_scale": g}


@pytest.mark.parametrize("case", sorted(DIGESTS))
def test_every_byte_is_the_tools(case):
    scheme, recipe, *options = case.split(" ")
    given = {name: json.loads(value) for name, value in (option.split("=") for option in options)}
    wrong = []
    for key, expected in DIGESTS[case].items():
        name, dtype = key.rsplit(" ", 1)
        more = {"nonfinite": "tool"} if name in samples.NONFINITE else {}
        if samples.digest(case, parts_of(samples.sample(name, dtype), scheme, recipe, **given, **more)) != expected:
            wrong.append(key)
    assert not wrong
    # What a tool leaves undefined is refused; of compressed-tensors' bytes there are those of most blocks.
    for name in samples.NONFINITE:
        if f"{name} float32" not in DIGESTS[case] and not scheme.startswith(("q", "iq")) and recipe != "compressed-tensors":
            with pytest.raises(tc.OutOfRangeError, match=f"(NaN|infinity) has no .* what {recipe} makes of it is undefined"):
                parts_of(samples.sample(name, "float32"), scheme, recipe, **given, nonfinite="tool")


def test_what_was_compared_with_a_tool():
    """Each recipe has digests of its tool, or says that it was taken from source; rceil is checked below."""
    compared = {tuple(case.split(" ")[:2]) for case in DIGESTS}
    for key, row in RECIPES.items():
        if row["compared_with"] == "tool":
            assert key in compared, key


LARGEST = {"mxfp8": 448, "mxfp8-e5m2": 57344, "mxfp6": 7.5, "mxfp6-e3m2": 28, "mxfp4": 6}
TYPES = {"mxfp8": ml_dtypes.float8_e4m3fn, "mxfp8-e5m2": ml_dtypes.float8_e5m2, "mxfp6": ml_dtypes.float6_e2m3fn,
         "mxfp6-e3m2": ml_dtypes.float6_e3m2fn, "mxfp4": ml_dtypes.float4_e2m1fn}  # fmt: skip


@pytest.mark.parametrize("scheme", LARGEST)
@pytest.mark.parametrize("name", sorted(samples.SAMPLES))
def test_rceil_is_the_exact_round_up(scheme, name):
    x = samples.sample(name, "float32")
    largest = F32(LARGEST[scheme])
    blocks = x.reshape(x.shape[0], -1, 32)
    quotient = np.abs(blocks).max(-1) * (F32(1) / largest)
    fraction, exponent = np.frexp(quotient)
    code = np.clip(np.where(quotient > 0, exponent - (fraction == 0.5), -127) + 127, 0, 254)
    with np.errstate(over="ignore"):
        scaled = np.clip(blocks * np.exp2(127.0 - code).astype(F32)[..., None], -largest, largest)
    q = tc.quantize(x, scheme, recipe="rceil")
    np.testing.assert_array_equal(q.scales, code.astype(np.uint8))
    np.testing.assert_array_equal(q.element_codes(), scaled.astype(TYPES[scheme]).view(np.uint8).reshape(x.shape))


def _blocks(x):
    """The largest magnitude of 128 x 128, and each element's."""
    padded = np.pad(x.astype(F32), [(0, -n % 128) for n in x.shape])
    tiles = np.abs(padded).reshape(padded.shape[0] // 128, 128, -1, 128).max((1, 3))
    return tiles, lambda s: np.repeat(np.repeat(s, 128, 0), 128, 1)[: x.shape[0], : x.shape[1]]


@pytest.mark.parametrize("name", ["normal", "weights", "exponents", "zeros", "ties"])
@pytest.mark.parametrize("dtype", list(samples.DTYPES))
def test_recipes_of_deepseek(name, dtype):
    """As kernel.py of V3 and V3.2, and DeepGEMM's cast, have it."""
    x = samples.sample(name, dtype)
    largest, spread = _blocks(x)
    largest = np.maximum(largest, F32(1e-4))
    numbers = x.astype(F32)

    def check(recipe, scale, quotient, **options):
        q = tc.quantize(x, "fp8-block", recipe=recipe, **options)
        np.testing.assert_array_equal(bits(q.scales), bits(scale.astype(F32)))
        expected = np.clip(quotient, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        np.testing.assert_array_equal(q.element_codes(), expected)

    def up(s):
        fraction, exponent = np.frexp(s)
        return np.exp2((exponent - (fraction == 0.5)).astype(np.float64)).astype(F32)

    v3, v32 = largest / F32(448), largest * (F32(1) / F32(448))
    check("deepseek", v3, numbers / spread(v3))
    check("deepseek-v3.2", v32, numbers / spread(v32))
    check("deepgemm", v3, numbers * spread(F32(1) / v3))
    check("deepseek", np.exp2(np.ceil(np.log2(v3))), numbers / spread(np.exp2(np.ceil(np.log2(v3)))), power_of_two_scales=True)
    check("deepseek-v3.2", up(v32), numbers / spread(up(v32)), power_of_two_scales=True)
    check("deepgemm", up(v3), numbers * spread(F32(1) / up(v3)), power_of_two_scales=True)
    q = tc.quantize(x, "fp8-block")
    assert q.recipe == "deepseek"


@pytest.mark.parametrize("name", ["normal", "weights", "exponents", "zeros", "ties"])
@pytest.mark.parametrize("dtype", list(samples.DTYPES))
def test_transformer_engine(name, dtype):
    x = samples.sample(name, dtype).astype(F32)
    blocks = x.reshape(x.shape[0], -1, 16)
    encode = F32(2688) / np.abs(x).max()
    decode = F32(1) / encode
    codes = (np.abs(blocks).max(-1) * (encode * (F32(1) / F32(6)))).clip(0, 448).astype(ml_dtypes.float8_e4m3fn)
    with np.errstate(divide="ignore"):
        factor = np.minimum(F32(1) / (codes.astype(F32) * decode), np.finfo(F32).max)
    q = tc.quantize(samples.sample(name, dtype), "nvfp4", recipe="te")
    np.testing.assert_array_equal(q.scales, codes.view(np.uint8))
    assert F32(q.global_scale) == decode
    expected = np.clip(blocks * factor[..., None], -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    np.testing.assert_array_equal(q.element_codes(), expected.reshape(x.shape))


def test_deepgemm_takes_blocks_of_1e_4_at_least():
    x = samples.sample("zeros", "float32")
    largest = np.maximum(np.abs(x.reshape(128, -1, 32)).max(-1), F32(1e-4))
    for scheme, most in (("mxfp8", F32(448)), ("mxfp4", F32(6))):
        fraction, exponent = np.frexp(largest / most)
        q = tc.quantize(x, scheme, recipe="deepgemm")
        np.testing.assert_array_equal(q.scales, exponent - (fraction == 0.5) + 127)


@pytest.mark.parametrize("scheme, dtype, above, below", [
    ("mxfp4", F32, 1.75 * 2.0**127, 0), ("mxfp8", F32, 1.75 * 2.0**127, 0), ("mxfp6", F32, 1.9375 * 2.0**127, 0),
    ("mxfp4", np.float16, 57344, 0.75 * 2.0**-14), ("mxfp8", np.float16, 57344, 0.75 * 2.0**-14),
    ("mxfp6", np.float16, 63488, 0.9375 * 2.0**-14)])  # fmt: skip
def test_where_compressed_tensors_takes_the_logarithm_of_infinity(scheme, dtype, above, below):
    """The limits that docs/recipes.md names."""
    limit, last = dtype(above), np.nextafter(dtype(above), dtype(0))
    lost = [limit] + ([dtype(0), np.nextafter(dtype(below), dtype(0))] if below else [])
    kept = [last] + ([dtype(below)] if below else [])
    x = np.zeros((len(lost) + len(kept), 32), dtype)
    x[:, 0] = lost + kept
    q = tc.quantize(x, scheme, recipe="compressed-tensors")
    is_lost = (q.scales[:, 0] == 127) & ~q.element_codes().any(1)
    assert is_lost.tolist() == [True] * len(lost) + [False] * len(kept)


def test_the_page_of_recipes():
    page = pathlib.Path(__file__).parents[2] / "docs/recipes.md"
    assert page.read_text() == recipe_page.page()


def test_defaults():
    expected = {"fp8-tensor": "torchao", "fp8-channel": "torchao", "fp8-block": "deepseek", "mxfp8": "rceil",
                "mxfp8-e5m2": "rceil", "mxfp6": "rceil", "mxfp6-e3m2": "rceil", "mxfp4": "rceil", "nvfp4": "modelopt",
                "int8-channel": "compressed-tensors", "int4-group": "compressed-tensors"}  # fmt: skip
    expected |= {name: "ggml" for name in ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
                                          "iq4_nl", "iq4_xs")}
    assert {row["scheme"]: row["recipe"] for row in tc.recipes() if row["default"]} == expected
    assert set(tc.schemes()) == set(expected)
    x = samples.sample("zeros", "bfloat16")
    for scheme, recipe in expected.items():
        if scheme.endswith(("_k", "_nl", "_xs")) or scheme == "fp8-channel":  # a row of zeros is NaN in torchao
            continue
        ours, named = tc.quantize(x, scheme), tc.quantize(x, scheme, recipe=recipe)
        np.testing.assert_array_equal(ours.codes.view(np.uint8), named.codes.view(np.uint8))
        assert ours.recipe == recipe and np.array_equal(ours.scales, named.scales)
    channel = tc.quantize(x, "fp8-channel")
    assert channel.scales[5] == 1 and not channel.element_codes()[5].any()


@pytest.mark.parametrize("scheme", tc.schemes())
def test_zeros_have_scale_one(scheme):
    q = tc.quantize(np.zeros((256, 256), F32), scheme)
    assert not q.dequantize("float32").any()
    if scheme.startswith(("q", "iq")):
        return
    assert not q.element_codes().any()
    one = {"mx": 127, "nv": 0x38}.get(scheme[:2], 1)
    assert (q.scales == one).all() and q.global_scale == (1 if scheme == "nvfp4" else None)


def test_parts():
    x = samples.sample("weights", "bfloat16")
    q = tc.quantize(x, "nvfp4")
    assert q.codes.dtype == np.uint8 and q.codes.shape == (128, 256) and q.scales.shape == (128, 32)
    codes = q.element_codes()
    assert codes.dtype == np.uint8 and codes.shape == x.shape
    np.testing.assert_array_equal(q.codes, codes[:, ::2] | codes[:, 1::2] << 4)
    np.testing.assert_array_equal(
        q.dequantize("bfloat16").view(np.uint16),
        tc.dequantize(q.codes, q.scales, "nvfp4", global_scale=q.global_scale, dtype="bfloat16").view(np.uint16),
    )
    assert tc.quantize(x, "fp8-block").codes.dtype == ml_dtypes.float8_e4m3fn
    assert tc.quantize(x, "fp8_block", power_of_two_scales=True).scales.dtype == F32
    int4 = tc.quantize(x, "int4-group", group_size=32, symmetric=False)
    assert int4.codes.dtype == np.int32 and int4.codes.shape == (128, 64)
    assert int4.zero_points.dtype == np.int8 and int4.zero_points.shape == int4.scales.shape == (128, 16)
    shared = tc.quantize(x, "nvfp4", maximum=2688.0)
    assert shared.global_scale == 1
    experts = tc.quantize(x.reshape(4, 32, 512), "mxfp4")
    np.testing.assert_array_equal(experts.scales.reshape(128, 16), tc.quantize(x, "mxfp4").scales)
    assert repr(q) == "QuantizedWeight('nvfp4', recipe='modelopt', shape=(128, 512))"


def test_parts_are_the_memory_of_the_weight():
    weight = np.linspace(-3, 3, 32 * 1024, dtype=np.float32).reshape(32, 1024)
    q = tc.quantize(weight, "mxfp8")
    codes, scales = q.codes.copy(), q.scales.copy()
    q.codes[0] = 0
    assert not q.dequantize()[0].any() and q.dequantize()[1:].any()
    parts = q.codes, q.scales
    del q
    gc.collect()
    assert np.array_equal(parts[0][1:], codes[1:]) and np.array_equal(parts[1], scales)


def test_large_codes_take_memory_that_was_freed():
    weight = np.ones((2048, 4096), np.float32)
    q = tc.quantize(weight, "fp8-tensor")
    address, reused = q.codes.ctypes.data, tc._core.result_pool_use()[2]
    del q
    again = tc.quantize(weight, "fp8-tensor")
    assert again.codes.ctypes.data == address and tc._core.result_pool_use()[2] == reused + 1


def test_spellings():
    x = samples.sample("weights", "bfloat16")
    q = tc.quantize(x, "nvfp4", recipe="compressed-tensors")
    ct = q.spelled()
    assert list(ct) == ["weight_packed", "weight_scale", "weight_global_scale"]
    assert ct["weight_global_scale"] == F32(q.global_scale) and np.array_equal(ct["weight_packed"], q.codes)
    assert ct["weight_scale"].dtype == ml_dtypes.float8_e4m3fn and np.array_equal(ct["weight_scale"].view(np.uint8), q.scales)
    modelopt = q.spelled("modelopt")
    assert list(modelopt) == ["weight", "weight_scale", "weight_scale_2"]
    assert modelopt["weight_scale_2"] == F32(1) / F32(q.global_scale)
    comfy = q.spelled("comfyui")
    np.testing.assert_array_equal(comfy["weight"], q.codes >> 4 | q.codes << 4)
    assert comfy["weight_scale"].shape == (128, 32)
    place = (np.arange(128)[:, None] % 32) * 16 + np.arange(128)[:, None] // 32 * 4 + np.arange(32) % 4 + np.arange(32) // 4 * 512
    np.testing.assert_array_equal(comfy["weight_scale"].view(np.uint8).ravel()[place], q.scales)
    fp8 = tc.quantize(x, "fp8-block")
    assert fp8.spelled().keys() == {"weight", "weight_scale_inv"}
    np.testing.assert_array_equal(fp8.spelled()["weight_scale_inv"], fp8.scales)
    int4 = tc.quantize(x, "int4-group", symmetric=False)
    spelled = int4.spelled("compressed-tensors")
    assert spelled.keys() == {"weight_packed", "weight_scale", "weight_shape", "weight_zero_point"}
    np.testing.assert_array_equal(spelled["weight_packed"], int4.codes)
    back = tc.dequantize(spelled["weight_packed"], spelled["weight_scale"], "int4-group", zero_points=spelled["weight_zero_point"])
    np.testing.assert_array_equal(bits(back), bits(int4.dequantize()))
    blocks = tc.quantize(x, "mxfp4").spelled("gpt-oss")
    assert {suffix: array.shape for suffix, array in blocks.items()} == {"weight.blocks": (128, 16, 16), "weight.scales": (128, 16)}
    assert list(tc.quantize(x.reshape(4, 32, 512), "mxfp4").spelled("gpt-oss")) == ["_blocks", "_scales"]
    np.testing.assert_array_equal(
        tc.quantize(x, "mxfp4", recipe="ggml").spelled("gguf")["weight"].view(np.uint8).reshape(128, -1), tc.gguf_quantize(x, "mxfp4")
    )
    assert tc.quantize(x, "q4_k").spelled()["weight"].shape == (128, 288)
    with pytest.raises(tc.CastError, match='no spelling "hqq"; there are deepseek, '):
        q.spelled("hqq")


@pytest.mark.parametrize("shape", [(3, 0), (0, 256), (0, 0)])
def test_weights_without_elements(shape):
    for scheme in tc.schemes():
        q = tc.quantize(np.zeros(shape, F32), scheme)
        assert q.dequantize().shape == shape
        if scheme == "mxfp8-e5m2":
            continue
        for array in q.spelled().values():
            assert array.size == 0 or array.dtype == np.int64 or np.all(array.astype(F32) == 1)
    assert tc.quantize(np.zeros((3, 0), F32), "fp8-channel").spelled()["weight_scale"].shape == (3, 1)


def test_asymmetric_integers_come_back():
    x = samples.sample("normal", "float32") + F32(0.05)
    q = tc.quantize(x, "int4-group", symmetric=False)
    codes = (q.element_codes() ^ 8).astype(F32) - 8
    zeros, scales = (np.repeat(part, 128, 1) for part in (q.zero_points.astype(F32), q.scales))
    np.testing.assert_array_equal(bits(q.dequantize("float32")), bits((codes - zeros) * scales))


def test_gguf_of_the_other_layouts():
    x = samples.sample("weights", "float32")
    for scheme in ("mxfp4", "nvfp4"):
        rows = tc.gguf_quantize(x, scheme)
        np.testing.assert_array_equal(tc.dequantize(rows, None, scheme), tc.quantize(x, scheme, recipe="ggml").dequantize())
    assert tc.gguf_quantize(x, "Q4_K").shape == (128, 288)


def test_names_are_the_same_in_any_case_and_with_either_dash():
    x = samples.sample("weights", "float32")
    for scheme, recipe, given in (
        ("mxfp8-e5m2", "rceil-torchao", ("MXFP8_E5M2", "RCEIL_torchao")),
        ("nvfp4", "modelopt", ("NVFP4", "ModelOpt")),
        ("int4-group", "compressed-tensors", ("int4_group", "compressed_tensors")),
    ):
        q, other = tc.quantize(x, scheme, recipe=recipe), tc.quantize(x, given[0], recipe=given[1])
        assert (other.scheme, other.recipe) == (scheme, recipe) and np.array_equal(q.codes, other.codes)
    spelled = tc.quantize(x, "int4-group").spelled("Compressed_Tensors")
    assert spelled.keys() == tc.quantize(x, "int4-group").spelled("compressed-tensors").keys()
    assert tc.quantize(x, "q4-k").scheme == "q4_k"
    rows = tc.gguf_quantize(x, "q4-K")
    assert np.array_equal(tc.dequantize(rows, None, "Q4_K"), tc.dequantize(rows, None, "q4_k"))


def test_tensors_of_pytorch():
    x = torch.from_numpy(samples.sample("weights", "float32")).bfloat16()
    q = tc.quantize(x, "fp8-channel", recipe="compressed-tensors")
    assert q.codes.dtype == torch.float8_e4m3fn and q.scales.dtype == torch.float32 and q.scales.shape == (128, 1)
    scale = x.abs().amax(-1, keepdim=True) / 448
    assert torch.equal(q.scales, scale.float())
    assert torch.equal(q.codes.view(torch.uint8), ((x / scale) + 0).to(torch.float8_e4m3fn).view(torch.uint8))
    assert torch.equal(q.dequantize("bfloat16"), (q.codes.float() * q.scales).bfloat16())


def test_the_compute_type():
    x = samples.sample("weights", "float32")
    narrow = x.astype(ml_dtypes.bfloat16)
    a = tc.quantize(x, "nvfp4", recipe="compressed-tensors", compute_dtype="bfloat16")
    b = tc.quantize(narrow, "nvfp4", recipe="compressed-tensors")
    assert a.global_scale == b.global_scale and np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales)
    with pytest.raises(tc.CastError, match="compute_dtype"):
        tc.quantize(x.astype(np.float64), "nvfp4")
    tc.quantize(x.astype(np.float64), "nvfp4", compute_dtype="float32")


def test_mistakes():
    x = np.ones((4, 64), F32)
    with pytest.raises(ValueError, match='no scheme "nvfp5"; there are fp8-tensor, '):
        tc.quantize(x, "nvfp5")
    for scheme in (None, 4):
        with pytest.raises(TypeError):
            tc.quantize(x, scheme)
        with pytest.raises(TypeError):
            tc.gguf_quantize(x, scheme)
    with pytest.raises(tc.CastError, match='no recipe "quark" for nvfp4; there are modelopt, compressed-tensors, '):
        tc.quantize(x, "nvfp4", recipe="quark")
    with pytest.raises(tc.CastError, match="groups of 48"):
        tc.quantize(x, "int4-group", group_size=48)
    with pytest.raises(tc.CastError, match="64 columns are no whole blocks of 256"):
        tc.gguf_quantize(x, "q4_k")
    with pytest.raises(tc.CastError, match="^iq2_xs of GGUF cannot be written"):
        tc.gguf_quantize(np.ones((4, 256), F32), "iq2_xs")
    with pytest.raises(ValueError, match='GGUF has no "int4_group"'):
        tc.gguf_quantize(np.ones((4, 256), F32), "int4_group")
    x[2, 3] = np.nan
    with pytest.raises(tc.OutOfRangeError, match="element 131: NaN has no block scale"):
        tc.quantize(x, "mxfp4")
    assert tc.quantize(x, "mxfp4", nonfinite="tool").scales[2, 0] == 255
    with pytest.raises(ValueError, match="nonfinite must be one of 'error', 'tool', not 'maybe'"):
        tc.quantize(x, "mxfp4", nonfinite="maybe")
    for scheme, wrong in (("int4-group", {"symmetric": "no"}), ("fp8-block", {"power_of_two_scales": "no"}),
                          ("int4-group", {"group_size": "32"}), ("mxfp4", {"clip": "max"})):  # fmt: skip
        with pytest.raises(tc.CastError, match=f"{next(iter(wrong))} must be "):
            tc.quantize(np.ones((4, 128), F32), scheme, **wrong)
    for wrong in ({"recipe": 4}, {"maximum": "1"}, {"compute_dtype": "float33"}):
        with pytest.raises((TypeError, ValueError)):
            tc.quantize(np.ones((4, 128), F32), "nvfp4", **wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'groups'"):
        tc.quantize(np.ones((4, 128), F32), "int4-group", groups=32)


def test_options_that_are_none_are_not_given():
    x = samples.sample("weights", "float32")
    none = dict.fromkeys(inspect.signature(tc.quantize).parameters.keys() - {"x", "scheme"})
    assert np.array_equal(tc.quantize(x, "int4-group", **none).codes, tc.quantize(x, "int4-group").codes)
    assert tc.quantize(x, "int4-group", symmetric=0).zero_points is not None  # as ONNX's attributes are


def test_the_signature_has_the_options():
    parameters = inspect.signature(tc.quantize).parameters
    assert list(parameters) == ["x", "scheme", "recipe", "group_size", "symmetric", "power_of_two_scales", "compute_dtype",
                                "nonfinite", "maximum", "clip", "importance"]  # fmt: skip
    assert {name: p.default for name, p in parameters.items() if p.default not in (None, p.empty)} == {
        "nonfinite": "error", "clip": "none"}  # fmt: skip
    assert all(f"        {name}: " in tc.quantize.__doc__ for name in parameters)


@pytest.mark.parametrize("options", [("nvfp4", {}), ("int4-group", {"symmetric": False}), ("mxfp4", {}), ("fp8-block", {})])
def test_quantized_weights_are_pickled(options):
    scheme, given = options
    made = tc.quantize(np.random.default_rng(3).normal(size=(4, 128)).astype(np.float32), scheme, **given)
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert repr(copied) == repr(made) and copied.block == made.block and copied.global_scale == made.global_scale
        assert np.array_equal(copied.codes, made.codes) and np.array_equal(copied.scales, made.scales)
        assert np.array_equal(copied.dequantize(), made.dequantize()) and copied.spelled().keys() == made.spelled().keys()
    state = list(made._core.__getstate__())
    state[7] = state[7][:-1]
    with pytest.raises((ValueError, tc.CastError)):
        made._core.__class__.__new__(made._core.__class__).__setstate__(tuple(state))
