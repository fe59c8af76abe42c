# SPDX-License-Identifier: Apache-2.0
"""Casts by PyTorch's own operations, which run on any device, against the engine. They run on the CPU here: integer
operations and lookups have the same bits everywhere."""

import re

import numpy as np
import pytest

import tensorcast as tc
from arrays import BITS, NAMES
from tensorcast import CastError

torch = pytest.importorskip("torch")

import tensorcast.torch as tct
from tensorcast._device._convert import CARRIER, cast_codes, options_key, plan_of, scale_codes
from tensorcast._device._formats import engine_codes

CODED = [name for name in NAMES if BITS[name] <= 16]
WIDE = [name for name in NAMES if BITS[name] > 16]
FLOATS = [row.name for row in tc.dtypes() if row.exponent_bits]


def carried(codes, bits):
    """An array of codes as the tensor of integers that a device holds."""
    width = max(8, bits)
    return torch.from_numpy(codes.astype(f"u{width // 8}").view(np.uint8 if width == 8 else f"i{width // 8}"))


def by_device(codes, from_name, to, options, scale=1.0, tables=False):
    plan = plan_of(from_name, to, options_key(options), not isinstance(scale, float) or scale != 1)
    made, _ = cast_codes(carried(codes, BITS[from_name]), plan, scale_codes(scale, torch.device("cpu")), tables)
    assert made.dtype == CARRIER[max(8, BITS[to])]
    return made.numpy()


def by_engine(codes, from_name, to, options):
    made = engine_codes(codes, from_name, to, options)
    return made & ((1 << BITS[to]) - 1) if BITS[to] < 8 else made


def assert_equal(made, expected, codes):
    wrong = np.flatnonzero(made.view(expected.dtype) != expected)
    assert wrong.size == 0, [(hex(codes[i]), hex(expected[i]), hex(made.view(expected.dtype)[i])) for i in wrong[:5]]


def bits(tensor):
    return tensor.reshape(-1).contiguous().view(torch.uint8)


def boundaries(name):
    """Bits of a type of 32 or 64 bits: around all midpoints of narrower types, around powers of two, and random ones."""
    if name in ("float32", "float64"):
        numbers = [np.array([0, np.inf, np.nan, 2.0**-149, 1e308, 1.7e308], np.float64)]
        for narrow in FLOATS:
            if BITS[narrow] <= 16 and narrow != "float8_e8m0fnu":
                values = engine_codes(np.arange(1 << BITS[narrow]), narrow, "float64").view(np.float64)
                values = np.unique(values[np.isfinite(values)])
                numbers += [values, (values[:-1] + values[1:]) / 2]
        exponents = 2.0 ** np.arange(-160, 130)
        numbers += [exponents, exponents * 1.5, 3.4028235e38 * (1 + np.arange(-4, 5) / 2**24), np.arange(-300, 300) / 4]
        with np.errstate(over="ignore"):
            near = np.concatenate(numbers).astype(name)
        bits = near.view(f"u{BITS[name] // 8}")
        around = [bits, bits + bits.dtype.type(1), bits - bits.dtype.type(1)]
        signed = np.concatenate(around)
        signed = np.concatenate([signed, signed | bits.dtype.type(1 << (BITS[name] - 1))])
    else:
        powers = [1 << i for i in range(BITS[name])]
        around = {(power + d) % (1 << BITS[name]) for power in powers for d in (-1, 0, 1)}
        odd = {(power * n + d) % (1 << BITS[name]) for power in powers for n in (17, 33, 257, 511) for d in (-1, 0, 1)}
        negative = {-value % (1 << BITS[name]) for value in around | odd}
        signed = np.array(sorted(around | odd | negative), f"u{BITS[name] // 8}")
    random = np.random.default_rng(8).integers(0, 1 << BITS[name], 20000, signed.dtype, endpoint=False)
    return np.concatenate([signed, random])


def codes_of(name):
    if BITS[name] > 16:
        return boundaries(name)
    return np.arange(256 if name == "bool" else 1 << BITS[name], dtype=np.uint16)


@pytest.fixture(scope="module")
def wide_codes():
    return {name: boundaries(name) for name in WIDE}


@pytest.mark.parametrize("from_name", NAMES)
def test_all_pairs(from_name, wide_codes):
    codes = wide_codes[from_name] if from_name in WIDE else codes_of(from_name)
    for to in NAMES:
        expected = by_engine(codes, from_name, to, {})
        assert_equal(by_device(codes, from_name, to, {}), expected, codes)
        if from_name in CODED:
            assert_equal(by_device(codes, from_name, to, {}, tables=True), expected, codes)


CHANGED = [
    {"saturate": False},
    {"out_of_range": "saturate"},
    {"out_of_range": "wrap"},
    {"saturate": False, "out_of_range": "saturate"},
    {"round_mode": "down"},
    {"round_mode": "nearest"},
    {"round_mode": "nearest", "saturate": False},
    {"rounding": "nearest_even"},
    {"rounding": "nearest_even", "out_of_range": "saturate"},
    {"opset": 23},
    {"opset": 19},
    {"opset": 19, "fnuz_inf": "flt_max"},
]


@pytest.mark.parametrize("options", CHANGED, ids=str)
@pytest.mark.parametrize("from_name", ["float32", "float64", "float16", "bfloat16", "float8_e5m2", "int16", "int64", "uint64"])
def test_options(options, from_name, wide_codes):
    codes = np.random.default_rng(7).permutation(wide_codes[from_name] if from_name in WIDE else codes_of(from_name))[:20000]
    for to in NAMES:
        try:
            expected = by_engine(codes, from_name, to, options)
        except CastError as error:
            with pytest.raises(type(error)) as refused:
                plan_of(from_name, to, options_key(options), False)
            assert str(refused.value) == str(error)
            continue
        assert_equal(by_device(codes, from_name, to, options), expected, codes)


WORDS = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("from_name", ["float32", "float64", "float16", "int16", "int64", "uint64"])
def test_words_of_rounding(word, from_name, wide_codes):
    codes = np.random.default_rng(5).permutation(wide_codes[from_name] if from_name in WIDE else codes_of(from_name))[:2000]
    seed = {"seed": 2**62 + 12345} if word == "stochastic" else {}
    for scale, more in ((1.0, {}), (1.0, {"saturate": False}), (0.1, {}), (-3.7e20, {}), (5e-324, {}), (1.0000000000000002, {})):
        options = {"rounding": word, **seed, **more}
        for to in NAMES:
            expected = by_engine(codes, from_name, to, {**options, "scale": scale})
            assert_equal(by_device(codes, from_name, to, options, scale), expected, codes)


@pytest.mark.parametrize("other, word", [("up", "toward_positive"), ("towards-zero", "toward_zero"), ("nearest-away", "nearest_away")])
def test_other_spellings_of_words(other, word):
    x = torch.linspace(-3, 3, 1000)
    made = tct.cast_on_device(x, "float8_e5m2", rounding=other)
    assert torch.equal(bits(made), bits(tct.cast_on_device(x, "float8_e5m2", rounding=word)))
    assert torch.equal(bits(made), bits(tc.cast(x, "float8_e5m2", rounding=word)))


def test_random_words_go_by_places():
    """Those of C order, whatever the strides; also of a part of four elements, and of none."""
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((33, 65)).astype(np.float32)).T
    for part in (x, x[3:10, 1:2], x[:0], x[0, 0]):
        made = tct.cast_on_device(part, "float8_e5m2", rounding="stochastic", seed=7)
        expected = tc.cast(part.contiguous(), "float8_e5m2", rounding="stochastic", seed=7)
        assert made.shape == expected.shape and torch.equal(bits(made), bits(expected))
    others = tct.cast_on_device(x, "float8_e5m2", rounding="stochastic", seed=8)
    assert not torch.equal(bits(others), bits(tct.cast_on_device(x, "float8_e5m2", rounding="stochastic", seed=7)))


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1])
def test_seeds_have_64_bits(seed):
    """PyTorch's schemas have 63; half of the tensors of a mapping get a seed above."""
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((10, 100)).astype(np.float32))
    options = {"rounding": "stochastic", "seed": seed}
    expected = bits(tc.cast(x, "bfloat16", **options))
    made = [
        tct.cast_on_device(x, "bfloat16", **options),
        tct.cast(x.clone().requires_grad_(), "bfloat16", **options),
        tct.cast(x, "bfloat16", scale=torch.tensor(1.0), **options),
        torch.compile(lambda x: tc.cast(x, "bfloat16", **options), backend="aot_eager")(x),
        torch.compile(lambda x: tct.cast_on_device(x, "bfloat16", **options), backend="aot_eager")(x),
        tct.cast_on_device(x, "bfloat16", fused=True, **options),
    ]
    assert all(torch.equal(bits(each), expected) for each in made)
    weights = {name: torch.empty(4, device="meta") for name in "abcdefgh"}
    assert {each.dtype for each in tc.cast(weights, "bfloat16", **options).values()} == {torch.bfloat16}
    for wrong in (-1, 2**64, True, 1.5):
        for function in (tct.cast_on_device, lambda x, to, **given: tct.cast(x.requires_grad_(), to, **given)):
            with pytest.raises(tc.CastError, match="seed must be a whole number of 64 bits"):
                function(x.clone(), "bfloat16", rounding="stochastic", seed=wrong)


@pytest.mark.parametrize("options", [{"saturate": 1.5}, {"saturate": None}, {"round_mode": b"up"}, {"opset": True}, {"threads": -1},
                                     {"threads": 0.5}, {"scale": "1"}, {"scale": 1j}, {"scale": None}])  # fmt: skip
def test_options_are_checked_before_the_dispatcher_converts_them(options):
    x = torch.ones(3)
    with pytest.raises((CastError, TypeError)) as refused:
        tc.cast(x, "float16", **options)
    with pytest.raises(type(refused.value)):
        tct.cast_on_device(x, "float16", **options)


def test_pairs_are_laid_out_as_compilers_are_told():
    x = torch.randn(6, 4).T
    made = tct.cast_on_device(x[:, :2], "float4_e2m1fn")
    assert made.stride() == tc.cast(x[:, :2], "float4_e2m1fn").stride() == tct.cast_on_device(x[:, :2].to("meta"), "float4_e2m1fn").stride()


SCALES = [0.0, -1.0, 0.1, 2.0**-140, -3.7e20, 1.0000000000000002, 5e-324, 1.7e308]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("from_name", ["float32", "float64", "bfloat16", "float8_e4m3fnuz", "int8", "int64", "uint64", "bool"])
def test_scales(scale, from_name, wide_codes):
    codes = np.random.default_rng(6).permutation(wide_codes[from_name] if from_name in WIDE else codes_of(from_name))[:3000]
    for options in ({}, {"out_of_range": "saturate", "rounding": "nearest_even"}):
        for to in NAMES:
            expected = by_engine(codes, from_name, to, {**options, "scale": scale})
            assert_equal(by_device(codes, from_name, to, options, scale), expected, codes)


@pytest.mark.parametrize("scale_type", ["float64", "float32", "bfloat16", "float16"])
def test_a_tensor_of_scales(scale_type):
    random = np.random.default_rng(3)
    x = torch.from_numpy(random.standard_normal((40, 96)).astype(np.float32) * 100)
    scale = torch.from_numpy(2.0 ** random.uniform(-13, 13, (40, 1)) * random.choice([-1, 1], (40, 1)))
    scale = scale.to(getattr(torch, scale_type))
    for to in ("float8_e4m3fn", "bfloat16", "int8", "int64", "float64", "float32", "bool", "float8_e8m0fnu"):
        made = tct.cast_on_device(x, to, scale=scale)
        expected = tc.cast(x, to, scale=scale)
        assert made.dtype == expected.dtype and torch.equal(made.view(torch.uint8), expected.view(torch.uint8))
    for wrong in (torch.ones(40), torch.ones(2, 40, 96), torch.ones(3, 1)):
        with pytest.raises(CastError, match="does not broadcast"):
            tct.cast_on_device(x, "float16", scale=wrong)


@pytest.mark.parametrize("options", [{"out_of_range": "error"}, {"invalid": "error"}, {"out_of_range": "error", "scale": 3.0},
                                     {"out_of_range": "error", "rounding": "nearest_even"}, {"inexact": "error"},
                                     {"inexact": "error", "scale": -0.5, "rounding": "to_odd"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("from_name", ["float32", "float16", "float8_e5m2", "float8_e8m0fnu", "int32", "uint64", "int8", "bool"])
def test_refusals_are_the_engines(options, from_name, wide_codes):
    codes = wide_codes[from_name] if from_name in WIDE else codes_of(from_name)
    codes = np.random.default_rng(5).permutation(codes)[:300]
    source = carried(codes, BITS[from_name])
    for to in NAMES:
        for part in np.array_split(np.arange(len(codes)), 30):
            wanted = seen = None
            try:
                expected = by_engine(codes[part], from_name, to, options)
            except CastError as error:
                wanted = error
            try:
                made = tct.cast_on_device(source[part], to, from_=from_name, **options)
            except CastError as error:
                seen = error
            assert (type(seen), str(seen)) == (type(wanted), str(wanted)), (to, codes[part])
            if wanted is None:
                made = made.contiguous().view(CARRIER[max(8, BITS[to])]).numpy()
                assert_equal(made, expected, codes[part])


@pytest.mark.parametrize("options", [{"out_of_range": "error"}, {"invalid": "error"}, {"invalid": "error", "scale": 1e-300},
                                     {"out_of_range": "error", "scale": -2.0}], ids=str)  # fmt: skip
def test_ue5m3_refuses_negative_numbers(options):
    to, infinity = "float8_e5m3fnu", float("inf")
    for number in (-1.0, -0.0, -1e-30, -1e30, -infinity, 1.0, 1e-30, 1e30, infinity, float("nan"), -float("nan")):
        x = torch.tensor([0.0, number])
        code = x.view(torch.int32).numpy().view(np.uint32)
        try:
            expected = by_engine(code, "float32", to, options)
        except CastError as error:
            with pytest.raises(type(error)) as refused:
                tct.cast_on_device(x, to, **options)
            assert str(refused.value) == str(error)
            continue
        assert_equal(tct.cast_on_device(x, to, **options).numpy(), expected, code)


def test_results_are_the_engines_tensors():
    image = torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last)
    for x in (image, torch.randn(4, 5).T, torch.randn(6, 8)[::2, 1::3], torch.randn(1, 5).expand(4, 5), torch.empty(0, 3),
              torch.tensor(2.5), torch.randn(3, 4).to(torch.float16)[:, ::2], torch.tensor([True, False])):  # fmt: skip
        for to in ("bfloat16", "float8_e4m3fn", "int8", "uint16", "float64", "bool"):
            made, expected = tct.cast_on_device(x, to), tc.cast(x, to)
            assert made.dtype == expected.dtype and made.stride() == expected.stride()
            assert torch.equal(bits(made), bits(expected))
    pairs = tct.cast_on_device(image, "float4_e2m1fn")
    assert pairs.dtype == torch.float4_e2m1fn_x2
    assert torch.equal(pairs.view(torch.uint8), tc.cast(image, "float4_e2m1fn").view(torch.uint8))
    assert torch.equal(tct.cast_on_device(pairs, "float32"), tc.cast(pairs, "float32"))
    with pytest.raises(CastError, match="even"):
        tct.cast_on_device(torch.ones(3), "float4_e2m1fn")


def test_codes_of_types_that_pytorch_lacks():
    x = torch.tensor([1.0, -2.5, 100.0])
    codes = tct.cast_on_device(x, "float6_e3m2fn")
    assert codes.dtype == torch.uint8
    assert tct.cast_on_device(codes, "float32", from_="float6_e3m2fn").tolist() == [1, -2.5, 28]
    assert tct.cast_on_device(x, "int4").tolist() == [1, 14, 4]
    for wrong, name in ((x, "float6_e3m2fn"), (codes, "float16")):
        with pytest.raises(CastError, match="from_= names the type of codes"):
            tct.cast_on_device(wrong, "float32", from_=name)
    for refused, to in ((x.to(torch.complex64), "float32"), (x, "string")):
        with pytest.raises(TypeError):
            tct.cast_on_device(refused, to)
    with pytest.raises(TypeError, match="to_dense"):
        tct.cast_on_device(x.to_sparse(), "float16")


def test_derivatives_and_transforms():
    x = torch.randn(4, 3, requires_grad=True)
    scale = torch.tensor([[1.0], [2.0], [4.0], [0.5]])
    tct.cast_on_device(x, "float16", scale=scale).float().sum().backward()
    assert torch.equal(x.grad, scale.expand(4, 3))
    assert not tct.cast_on_device(x, "int8").requires_grad
    rows = torch.randn(5, 4, 3)
    expected = tct.cast_on_device(rows, "bfloat16", scale=scale)
    assert torch.equal(torch.vmap(lambda row: tct.cast_on_device(row, "bfloat16", scale=scale))(rows), expected)
    by_row = torch.vmap(lambda row, s: tct.cast_on_device(row, "bfloat16", scale=s))(rows[0], scale[:, 0])
    assert torch.equal(by_row, tct.cast_on_device(rows[0], "bfloat16", scale=scale))
    tangent = torch.func.jvp(lambda x: tct.cast_on_device(x, "bfloat16", scale=2.0), (rows,), (torch.ones_like(rows),))[1]
    assert torch.equal(tangent.float(), torch.full((5, 4, 3), 2.0))
    with pytest.raises(CastError, match="no gradient"):
        tct.cast_on_device(rows, "float16", scale=scale.requires_grad_())
    torch.library.opcheck(torch.ops.tensorcast.cast_on_device, (rows, "float16", scale.detach()))
    torch.library.opcheck(torch.ops.tensorcast.cast_on_device, (rows, "float8_e4m3fn"))


def test_shapes_on_the_meta_device():
    x = torch.empty(3, 4, device="meta")
    for to in ("float16", "float8_e8m0fnu", "int8", "float64"):
        made = tct.cast_on_device(x, to)
        assert made.device.type == "meta" and made.shape == (3, 4) and made.dtype == getattr(torch, to)
    assert tct.cast_on_device(x, "int4").dtype == torch.uint8
    assert tct.cast_on_device(x, "float4_e2m1fn").shape == (3, 2)
    assert torch.ops.tensorcast.cast(x, "bfloat16").dtype == torch.bfloat16


@pytest.mark.parametrize("from_, to, options", [("float32", "float8_e4m3fn", {}), ("bfloat16", "float4_e2m1fn", {"scale": 0.1}),
                                                ("float64", "float32", {}), ("float8_e5m2", "bfloat16", {}),
                                                ("bfloat16", "float8_e8m0fnu", {}),
                                                ("float32", "int8", {"out_of_range": "saturate"})], ids=str)  # fmt: skip
def test_the_compiler_fuses_the_same_bits(from_, to, options):
    x = (torch.randn(64, 128) * 100).to(getattr(torch, from_))
    made = tct.cast_on_device(x, to, fused=True, **options)
    assert torch.equal(made.view(torch.uint8), tct.cast_on_device(x, to, **options).view(torch.uint8))


def test_any_number_of_pairs_and_shapes_are_fused():
    """PyTorch compiles one piece of code eight times."""
    for to in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "int8", "uint8", "int16", "int32", "bool"):
        x = torch.randn(2, 3)
        assert torch.equal(bits(tct.cast_on_device(x, to, fused=True)), bits(tc.cast(x, to))), to
    for shape in ((), (1,), (5,), (1, 5), (5, 1), (2, 3, 4), (1, 3, 1), (2, 1, 2, 3), (2, 2, 2, 2, 2), (1, 1, 1, 1, 1, 3), (0, 2)):
        x = torch.randn(shape)
        assert torch.equal(bits(tct.cast_on_device(x, "float16", fused=True)), bits(tc.cast(x, "float16"))), shape


def test_another_scale_compiles_nothing():
    from tensorcast._device import _operator

    x = torch.randn(2, 3)
    known = []
    for scale in (0.1, -0.3, 1e300, 5e-324):
        made = tct.cast_on_device(x, "float16", fused=True, scale=scale)
        assert torch.equal(bits(made), bits(tc.cast(x, "float16", scale=scale))), scale
        known.append(_operator.fused.cache_info().currsize)
    assert len({*known}) == 1


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_a_scale_is_finite(scale, fused):
    with pytest.raises(tc.CastError, match="scale must be a finite number"):
        tct.cast_on_device(torch.ones(3), "float16", fused=fused, scale=scale)


def test_the_compiler_calls_what_it_cannot_fuse():
    x = torch.randn(64, 128)
    for changed in (lambda x: tc.cast(x, "float8_e5m2"), lambda x: tct.cast_on_device(x, "int32", out_of_range="error")):
        assert torch.equal(bits(torch.compile(changed, fullgraph=True)(x)), bits(changed(x)))


def test_the_compiler_sees_through_the_operator():
    from torch._inductor.utils import run_and_get_code

    x = torch.randn(64, 128)
    scale = torch.rand(64, 1)
    function = torch.compile(lambda x, s: tct.cast_on_device(x * 2, "float8_e5m2", scale=s), fullgraph=True)
    made, code = run_and_get_code(function, x, scale)
    assert torch.equal(made.view(torch.uint8), tc.cast(x * 2, "float8_e5m2", scale=scale).view(torch.uint8))
    assert "torch.ops.tensorcast" not in code[0]


SCHEMES = ["mxfp8", "mxfp8-e5m2", "mxfp6", "mxfp6-e3m2", "mxfp4", "nvfp4", "fp8-channel", "fp8-block"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks(scheme, dtype):
    from tensorcast._device import _blocks, _quantize

    random = np.random.default_rng(4)
    for shape in ((64, 96), (130, 260), (3, 40, 64), (72,)):
        numbers = random.standard_normal(shape) * np.exp2(random.integers(-12, 6, (*shape[:-1], 1)))
        numbers[..., :40] = 0
        numbers[..., 7::31] = -0.0
        x = torch.from_numpy(numbers).to(getattr(torch, dtype))
        recipe = _quantize.recipe_for(scheme, {}, x.device)
        assert _quantize.quantize(torch.zeros_like(x), recipe, {}) is None
        expected, parts = tc.quantize(x, scheme), _quantize.quantize(x, recipe, {})
        assert torch.equal(bits(parts.codes), bits(expected.codes)) and torch.equal(bits(parts.scales), bits(expected.scales))
        assert parts.scales.shape == expected.scales.shape and parts.codes.shape == expected.codes.shape
        assert (parts.global_scale is None) == (expected.global_scale is None)
        if expected.global_scale is not None:
            assert float(parts.global_scale) == expected.global_scale
        for to in ("float32", "bfloat16", "float8_e5m2"):
            made = _blocks.dequantize(parts.codes, parts.scales, scheme, parts.global_scale, None, shape, None, to)
            assert made.shape == shape and torch.equal(bits(made), bits(expected.dequantize(to)))
    x = torch.from_numpy(random.standard_normal((256, 256)).astype(np.float32))
    for hard in (1e-45, 1e-39, 1e-30, 1e38, 1e-7):
        made = _quantize.quantize(x * hard, _quantize.recipe_for(scheme, {}, x.device), {})
        if made is not None:  # else the engine makes it
            expected = tc.quantize(x * hard, scheme)
            assert torch.equal(bits(made.codes), bits(expected.codes)) and torch.equal(bits(made.scales), bits(expected.scales))
    for odd in (float("nan"), float("inf")):
        x[3, 5] = odd
        assert _quantize.quantize(x, _quantize.recipe_for(scheme, {}, x.device), {}) is None


def test_scales_that_are_powers_of_two():
    from tensorcast._device import _quantize

    random = np.random.default_rng(9)
    exponents = np.repeat(2.0 ** np.arange(-20, 120), 3) * np.tile([1, 1 + 2**-23, 1 + 2**-20], 140)
    x = torch.from_numpy((random.uniform(-1, 1, (420, 128)) * exponents[:, None] * 448).clip(-3e38, 3e38).astype(np.float32))
    x[:, 0] = torch.from_numpy((exponents * 448).clip(-3e38, 3e38).astype(np.float32))
    for rows in x.split(1):
        block = rows.expand(128, 128).contiguous()
        made = _quantize.quantize(block, _quantize.recipe_for("fp8-block", {}, x.device), {"power_of_two_scales": True})
        expected = tc.quantize(block, "fp8-block", power_of_two_scales=True)
        assert torch.equal(made.scales, expected.scales) and torch.equal(bits(made.codes), bits(expected.codes))


def test_decoding_with_other_scales():
    from tensorcast._device import _blocks

    random = np.random.default_rng(12)
    codes = torch.from_numpy(random.integers(0, 256, (6, 64), np.uint8))
    scales = torch.from_numpy(random.integers(0, 256, (6, 2), np.uint8))
    cases = [
        ("mxfp8", codes, scales, {}),
        ("mxfp4", codes, torch.from_numpy(random.integers(0, 255, (6, 4), np.uint8)), {}),
        ("nvfp4", codes, torch.from_numpy(random.integers(0, 127, (6, 8), np.uint8)), {"global_scale": 0.37}),
        ("nvfp4", codes, torch.from_numpy(random.integers(0, 127, (6, 8), np.uint8)),
         {"global_scale": 0.37, "spelling": "compressed-tensors"}),
        ("fp8-channel", codes.view(torch.float8_e4m3fn), torch.rand(6, 1), {}),
        ("fp8-tensor", codes.view(torch.float8_e4m3fn), torch.tensor([0.3]), {}),
        ("fp8-block", codes.view(torch.float8_e4m3fn), torch.rand(2, 3), {"block": (4, 30)}),
        ("int8-channel", codes.view(torch.int8), torch.rand(6, 1).to(torch.bfloat16), {}),
    ]  # fmt: skip
    for scheme, given, by, options in cases:
        for dtype in ("float32", "float16"):
            expected = tc.dequantize(given, by, scheme, dtype=dtype, **options)
            made = _blocks.dequantize(given, by, scheme, options.get("global_scale"), options.get("block"), None,
                                      options.get("spelling"), dtype)  # fmt: skip
            number = ~expected.float().isnan()
            assert torch.equal(bits(made[number]), bits(expected[number])) and torch.equal(made.isnan(), expected.isnan())
    for wrong in (codes.view(torch.float8_e5m2), codes.to(torch.bfloat16)):
        with pytest.raises(CastError, match="expected uint8 or float8_e4m3fn"):
            _blocks.dequantize(wrong, scales, "mxfp8", None, None, None, None, "float32")
    with pytest.raises(CastError, match="scales of type float8_e4m3fn, expected float8_e8m0fnu or uint8"):
        _blocks.dequantize(codes, scales.view(torch.float8_e4m3fn), "mxfp8", None, None, None, None, "float32")
    with pytest.raises(CastError, match="4 x 2 blocks"):
        _blocks.dequantize(codes[:4], scales, "mxfp8", None, None, None, None, "float32")


def test_descriptions_of_blocks_are_the_engines():
    """What the engine refuses is refused, and layouts of scales that it takes are taken."""
    from tensorcast._device import _blocks

    random = np.random.default_rng(12)
    codes = torch.from_numpy(random.integers(0, 256, (6, 64), np.uint8))
    scales = torch.from_numpy(random.integers(100, 140, (6, 2), np.uint8))
    fp4 = torch.from_numpy(random.integers(0, 127, (6, 8), np.uint8))
    floats = codes.view(torch.float8_e4m3fn)
    cases = [("mxfp8", codes, by, {}) for by in (scales, scales.T.contiguous(), scales.reshape(-1), scales[None], scales[:0], scales.double(),
                                                 scales.float(), scales.half(), scales.int(), scales.bool())]  # fmt: skip
    cases += [("mxfp8", codes, scales, {"dtype": dtype}) for dtype in ("int8", "bool", "float6_e2m3fn", "uint4", "float8_e4m3fn", "float64")]
    cases += [("mxfp8", codes, scales, {"shape": shape}) for shape in ((), (6, 64), (64, 6), (6, 65))]
    cases += [("nvfp4", codes, fp4, {"global_scale": torch.rand(count)}) for count in (0, 1, 2, 6)]
    cases += [("fp8-tensor", floats.reshape(2, 3, 64), torch.tensor(0.3), {}), ("fp8-tensor", floats[0], torch.tensor([0.3]), {}),
              ("fp8-channel", floats.reshape(2, 3, 64), torch.rand(2, 3), {}),
              ("fp8-channel", floats.reshape(2, 3, 64), torch.rand(3, 2), {})]  # fmt: skip
    refused = 0
    for scheme, given, by, options in cases:
        arguments = (options.get("global_scale"), (None,) * 4, None, options.get("shape"), None, options.get("dtype", "float32"))
        try:
            expected = tc.dequantize(given, by, scheme, **options)
        except CastError:
            refused += 1
            with pytest.raises(CastError):
                _blocks.checked_dequantize(given, by, scheme, *arguments)
            continue
        made = _blocks.checked_dequantize(given, by, scheme, *arguments)
        number = ~expected.float().isnan()
        assert made.shape == expected.shape and torch.equal(bits(made[number]), bits(expected[number]))
    assert 12 <= refused < len(cases) - 8


@pytest.mark.parametrize("scheme, options", [
    ("mxfp8", {"power_of_two_scales": True}), ("fp8-channel", {"power_of_two_scales": True}), ("nvfp4", {"power_of_two_scales": True}),
    ("nvfp4", {"nonfinite": "saturate"}), ("nvfp4", {"maximum": -1.0}),
], ids=str)  # fmt: skip
def test_options_of_quantization_are_the_engines(scheme, options):
    from tensorcast._device import _weight

    x = torch.randn(4, 64)
    with pytest.raises(CastError) as refused:
        tc.quantize(x, scheme, **options)
    with pytest.raises(CastError, match=re.escape(str(refused.value))):
        _weight.quantize(x, scheme, options)


def test_what_tensors_on_a_device_are_given_to():
    """The functions behind tc.cast, tc.quantize and tc.dequantize of tensors on a device, with tensors on the CPU."""
    from tensorcast._device import _blocks, _entry, _weight
    from tensorcast._interop._torch_operator import _cast_on_device

    x = torch.randn(4, 64) * 100
    assert torch.equal(bits(_cast_on_device(x, "float8_e4m3fn", saturate=False)), bits(tc.cast(x, "float8_e4m3fn", saturate=False)))
    cast = lambda name, scale=1.0, out=None, report=False, **options: _entry.cast_tensor(x, name, out, True, None, report, scale, options)
    rows = np.array([[1.0], [2.0], [0.25], [100.0]])
    for scale in (rows, rows.tolist(), torch.from_numpy(rows), torch.tensor(rows.tolist(), dtype=torch.int32), 0.1):
        assert torch.equal(bits(cast("float16", scale)), bits(tc.cast(x, "float16", scale=scale)))
    out = torch.empty(4, 64, dtype=torch.float16)
    assert cast("float16", out=out) is out and torch.equal(out, x.half())
    for wrong, words in ((x, "type float16"), (torch.empty(4, 64, dtype=torch.float16, device="meta"), "out is on meta")):
        with pytest.raises(CastError, match=words):
            cast("float16", out=wrong)
    made, report = cast("float8_e4m3fn", report=True)
    assert report == tc.cast(x, "float8_e4m3fn", report=True)[1] and torch.equal(bits(made), bits(tc.cast(x, "float8_e4m3fn")))
    tiny = torch.full((2, 32), 1e-40)
    for weight in (x, tiny, torch.zeros(2, 32)):
        made, expected = _weight.quantize(weight, "nvfp4", {}), tc.quantize(weight, "nvfp4")
        assert (made.scheme, made.recipe, made.shape, made.block) == (expected.scheme, expected.recipe, expected.shape, expected.block)
        assert torch.equal(made.codes, expected.codes) and torch.equal(made.element_codes(), expected.element_codes())
        assert torch.equal(made.dequantize("float16"), expected.dequantize("float16"))
    for scheme, options in (("int4-group", {}), ("mxfp8", {"recipe": "floor"}), ("nvfp4", {"clip": "mse"})):
        with pytest.raises(tc.UnsupportedError, match=r"is not made on a device \(cpu\)"):
            _weight.quantize(x, scheme, options)
    with pytest.raises(tc.UnsupportedError, match="not decoded on a device"):
        _blocks.checked_dequantize(made.codes, made.scales, "nf4", None, (None,), None, None, None, "float32")
    x[1, 2] = float("nan")
    with pytest.raises(tc.OutOfRangeError, match="NaN"):
        _weight.quantize(x, "mxfp8", {})
