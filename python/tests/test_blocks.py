# SPDX-License-Identifier: Apache-2.0
"""Block formats against NumPy: each step is one float32 operation there, too. GGUF against the gguf package."""

import gguf
import ml_dtypes
import numpy as np
import pytest
import torch

import tensorcast as tc

RANDOM = np.random.default_rng(5)
F32 = np.float32
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)
TARGETS = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def same(made, expected):
    """Equal bits; any NaN is as good as another, as ml_dtypes chooses its own."""
    made, expected = np.asarray(made), np.asarray(expected)
    assert made.shape == expected.shape and made.dtype == expected.dtype
    nan = np.isnan(expected.astype(F32))
    np.testing.assert_array_equal(np.isnan(made.astype(F32)), nan)
    unsigned = f"u{made.dtype.itemsize}"
    np.testing.assert_array_equal(made.view(unsigned)[~nan], expected.view(unsigned)[~nan])


def check(expected, codes, scales, scheme, **options):
    for name, dtype in TARGETS.items():
        with np.errstate(over="ignore"):
            same(tc.dequantize(codes, scales, scheme, dtype=name, **options), expected.astype(dtype))


def codes_of(*shape):
    return RANDOM.integers(0, 256, shape, np.uint8)


def scales_of(*shape, dtype=F32):
    return np.exp2(RANDOM.uniform(-12, 12, shape)).astype(dtype)


def e8m0(codes):
    return codes.view(ml_dtypes.float8_e8m0fnu).astype(F32)


def e4m3(codes):
    return codes.view(ml_dtypes.float8_e4m3fn).astype(F32)


def nibbles(packed, high_first=False):
    low, high = packed & 15, packed >> 4
    pair = (high, low) if high_first else (low, high)
    return np.stack(pair, -1).reshape(*packed.shape[:-1], -1)


def spread(scales, shape, rows, columns):
    """A scale for each element of the last two dimensions."""
    return np.repeat(np.repeat(scales, rows, -2), columns, -1)[..., : shape[-2], : shape[-1]]


@pytest.mark.parametrize("rows, columns", [(128, 128), (300, 257), (1, 1), (576, 130)])
@pytest.mark.parametrize("scale", [F32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e8m0fnu])
def test_fp8_in_blocks(rows, columns, scale):
    codes = codes_of(rows, columns)
    scales = scales_of(-(-rows // 128), -(-columns // 128)).astype(scale)
    expected = e4m3(codes) * spread(scales.astype(F32), codes.shape, 128, 128)
    check(expected, codes.view(ml_dtypes.float8_e4m3fn), scales, "fp8-block")
    check(expected, codes, scales, "fp8-block")  # plain bytes are codes, too


@pytest.mark.parametrize("scheme, grid", [("fp8-tensor", (1, 1)), ("fp8-channel", (70, 1))])
def test_fp8_of_tensors_and_channels(scheme, grid):
    codes, scales = codes_of(70, 33), scales_of(*grid)
    check(e4m3(codes) * scales, codes, scales, scheme)


def test_all_scale_bytes_and_codes_of_mx():
    scales = np.arange(256, dtype=np.uint8).reshape(256, 1)
    codes = np.tile(np.arange(256, dtype=np.uint8), (256, 1))
    scales8 = np.repeat(scales, 8, 1)
    with np.errstate(invalid="ignore", over="ignore"):
        check(e4m3(codes) * np.repeat(e8m0(scales8), 32, 1), codes, scales8, "mxfp8")
        check(E2M1[nibbles(codes[:, :16])] * e8m0(scales), codes[:, :16], scales, "mxfp4")


def test_six_bits():
    codes = RANDOM.integers(0, 64, (5, 64), np.uint8)
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :6].reshape(5, -1)
    packed = np.packbits(bits, axis=-1, bitorder="little")
    scales = codes_of(5, 2)
    for scheme, dtype in (("mxfp6", ml_dtypes.float6_e2m3fn), ("mxfp6-e3m2", ml_dtypes.float6_e3m2fn)):
        with np.errstate(invalid="ignore", over="ignore"):
            check(codes.view(dtype).astype(F32) * np.repeat(e8m0(scales), 32, 1), packed, scales, scheme)


def swizzle(scales):
    """Scales in tiles of 128 rows and 4 columns, as cuBLAS reads them."""
    rows, columns = -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4
    padded = np.zeros((rows, columns), scales.dtype)
    padded[: scales.shape[0], : scales.shape[1]] = scales
    return padded.reshape(rows // 128, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4).copy()


@pytest.mark.parametrize("rows, blocks", [(3, 1), (130, 5), (256, 8)])
def test_nvfp4(rows, blocks):
    packed, scales = codes_of(rows, blocks * 8), codes_of(rows, blocks)
    scale = e4m3(scales)
    global_scale = F32(0.0123)
    factor = np.repeat(scale * global_scale, 16, 1)
    check((E2M1 + F32(0))[nibbles(packed)] * factor, packed, scales, "nvfp4", global_scale=global_scale)
    divided = np.repeat(scale / F32(777), 16, 1)
    check(E2M1[nibbles(packed)] * divided, packed, scales, "nvfp4", global_scale=777, spelling="compressed-tensors")
    check(E2M1[nibbles(packed, True)] * factor, packed, swizzle(scales), "nvfp4", global_scale=global_scale,
          spelling="comfyui")  # fmt: skip


def test_experts_of_gpt_oss():
    blocks, scales = codes_of(3, 40, 2, 16), RANDOM.integers(100, 140, (3, 40, 2), np.uint8)
    numbers = E2M1[nibbles(blocks)] * e8m0(scales)[..., None]
    check(numbers.reshape(3, 40, 64).swapaxes(1, 2), blocks.reshape(3, 40, 32), scales, "mxfp4", spelling="gpt-oss")
    check(numbers.reshape(3, 40, 64).swapaxes(1, 2), blocks, scales, "mxfp4", spelling="gpt-oss")  # as it is stored
    check(numbers[0].reshape(40, 64).T, blocks[0], scales[0], "mxfp4", spelling="gpt-oss")
    with pytest.raises(tc.CastError, match="dimension 1 of the codes is 40, of the scales 2"):
        tc.dequantize(blocks, scales.swapaxes(1, 2), "mxfp4", spelling="gpt-oss")


def test_matrices_with_global_scales_of_their_own():
    packed, scales, factors = codes_of(4, 6, 16), codes_of(4, 6, 2), scales_of(4)
    expected = (E2M1 + F32(0))[nibbles(packed)] * np.repeat(e4m3(scales) * factors[:, None, None], 16, -1)
    check(expected, packed, scales, "nvfp4", global_scale=factors)


@pytest.mark.parametrize("scale", [F32, ml_dtypes.bfloat16])
def test_integers(scale):
    codes, scales = codes_of(9, 64).view(np.int8), scales_of(9, 1).astype(scale)
    check(codes.astype(F32) * scales.astype(F32), codes, scales, "int8-channel")
    with_factor = codes.astype(F32) * scales.astype(F32) * F32(7.874015718698502e-3)
    check(with_factor, codes, scales, "int8-channel", spelling="bitsandbytes")
    words, scales = codes_of(16, 64).view(np.int32), scales_of(16, 4).astype(scale)
    wide = np.repeat(scales.astype(F32), 32, 1)
    numbers = nibbles(words.view(np.uint8)).astype(F32)
    check((numbers - 8) * wide, words, scales, "int4-group", block=32)
    zeros = codes_of(16, 4) & 15
    packed_zeros = np.zeros((2, 4), np.uint32)  # eight rows a word
    for row in range(16):
        packed_zeros[row // 8] |= zeros[row].astype(np.uint32) << np.uint32(row % 8 * 4)
    asymmetric = (numbers - np.repeat(zeros.astype(F32), 32, 1)) * wide
    check(asymmetric, words, scales, "int4-group", block=32, zero_points=packed_zeros.view(np.int32))


def test_int4_of_modelopt():
    packed, scales = codes_of(8, 256), scales_of(16, 2)
    rows = np.stack((packed & 15, packed >> 4), 1).reshape(16, 256).astype(np.int8)
    check(np.where(rows > 7, rows - 16, rows) * np.repeat(scales, 128, 1), packed, scales, "int4-group", spelling="modelopt")


def stream(codes, bits):
    """Codes of each column as words down the rows, low bits first."""
    flat = np.unpackbits(codes.astype(np.uint8)[..., None], axis=-1, bitorder="little")[..., :bits]
    bits_down = flat.transpose(1, 0, 2).reshape(codes.shape[1], -1)
    return np.packbits(bits_down, axis=-1, bitorder="little").view(np.uint32).T.copy().view(np.int32)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("spelling, added", [("gptq", 1), ("gptq-v2", 0)])
def test_gptq(bits, spelling, added):
    inputs, outputs, group = 96, 64, 32
    codes = RANDOM.integers(0, 1 << bits, (inputs, outputs))
    zeros = RANDOM.integers(0, 1 << bits, (inputs // group, outputs))
    scales = RANDOM.standard_normal((inputs // group, outputs)).astype(np.float16)
    order = RANDOM.permutation(np.arange(inputs) // group).astype(np.int32)
    packed_zeros = stream(zeros.T, bits).T.copy()
    meant = zeros
    if added and bits == 3:
        meant = (zeros + 1) % 8
    elif added:  # as GPTQModel reads it: 1 is added to each field of a word, with the carry
        ones = np.uint32(sum(1 << at for at in range(0, 32, bits)))
        words = np.ascontiguousarray(packed_zeros).view(np.uint32) + ones
        fields = words[:, :, None] >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
        meant = fields.reshape(zeros.shape).astype(np.int64)
    for index in (np.arange(inputs) // group, order):
        expected = ((codes - meant[index]).astype(F32) * scales.astype(F32)[index]).T
        check(expected, stream(codes, bits), scales, f"gptq-{bits}", spelling=spelling, zero_points=packed_zeros, block=group,
              group_index=order if index is order else None)  # fmt: skip


def test_awq():
    inputs, outputs, group = 64, 300 // 8 * 8, 32
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def packed(codes):
        words = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
        for place, column in enumerate(order):
            words |= codes[:, column::8].astype(np.uint32) << np.uint32(4 * place)
        return words.view(np.int32)

    codes, zeros = codes_of(inputs, outputs) & 15, codes_of(2, outputs) & 15
    scales = scales_of(2, outputs, dtype=np.float16)
    index = np.arange(inputs) // group
    expected = ((codes.astype(F32) - zeros.astype(F32)[index]) * scales.astype(F32)[index]).T
    check(expected, packed(codes), scales, "awq", zero_points=packed(zeros), block=group)


@pytest.mark.parametrize("shape", [(7, 192), (5, 27), (64,)])
def test_flat_blocks_of_bitsandbytes(shape):
    count = int(np.prod(shape))
    packed, absmax = codes_of(-(-count // 2), 1), scales_of(-(-count // 64))
    table = RANDOM.standard_normal(16).astype(F32)
    expected = (table[nibbles(packed, high_first=True).ravel()[:count]] * np.repeat(absmax, 64)[:count]).reshape(shape)
    check(expected, packed, absmax, "nf4", shape=shape, table=table)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx(bits):
    codes = RANDOM.integers(0, 1 << bits, (6, 128))
    packed = stream(codes.T, bits).T.copy().view(np.uint32)
    scales, biases = scales_of(6, 2, dtype=np.float16), scales_of(6, 2, dtype=np.float16)
    wide = codes.astype(F32) * np.repeat(scales.astype(F32), 64, 1) + np.repeat(biases.astype(F32), 64, 1)
    check(wide, packed, scales, f"affine-{bits}", biases=biases)


GGUF = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4",
        "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"]  # fmt: skip


@pytest.mark.parametrize("name", GGUF)
def test_gguf(name):
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = codes_of(40, 3 * (1024 // elements) * size)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(blocks, kind)
        check(expected, blocks, None, name.lower())


@pytest.mark.parametrize("scheme", ["int4-group", "int8-channel", "nvfp4", "mxfp4", "fp8-block"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_weights_that_quantize_made(scheme, symmetric):
    weight = RANDOM.standard_normal((16, 256)).astype(F32)
    options = {"group_size": 32, "symmetric": symmetric} if scheme == "int4-group" else {}
    q = tc.quantize(weight, scheme, **options)
    expected = q.dequantize("bfloat16")
    same(tc.dequantize(q, dtype="bfloat16"), expected)
    block = {"block": 32} if scheme == "int4-group" else {}
    parts = {"global_scale": q.global_scale, "zero_points": q.zero_points, **block}
    same(tc.dequantize(q.codes, q.scales, scheme, dtype="bfloat16", **parts), expected)
    if scheme == "int4-group":
        assert np.abs(expected.astype(F32) - weight).max() < np.abs(q.scales).max()
        made = q.spelled("compressed-tensors")
        packed_zeros = made.get("weight_zero_point")
        same(tc.dequantize(made["weight_packed"], made["weight_scale"], scheme, zero_points=packed_zeros, dtype="bfloat16",
                           block=32), expected)  # fmt: skip
    with pytest.raises(TypeError, match="dtype= alone"):
        tc.dequantize(q, q.scales, scheme)
    with pytest.raises(TypeError, match="needs the scheme"):
        tc.dequantize(q.codes, q.scales)


@pytest.mark.parametrize("name, value", [("global_scale", 2.0), ("table", np.ones(16, F32))])
def test_arguments_that_a_format_does_not_have(name, value):
    for scheme, codes, scales in (("fp8-channel", codes_of(2, 8), scales_of(2, 1)), ("mxfp4", codes_of(2, 16), codes_of(2, 1))):
        with pytest.raises(tc.CastError, match=f"{name}=? is given, which this format does not have|`{name}` is given"):
            tc.dequantize(codes, scales, scheme, **{name: value})
    with pytest.raises(tc.CastError, match="given"):
        tc.dequantize(codes_of(1, 18), None, "q4_0", **{name: value})


def test_tensors_of_pytorch():
    codes = torch.randn(64, 64).to(torch.float8_e4m3fn)
    made = tc.dequantize(codes, torch.full((1, 1), 0.5), "fp8-block", dtype="bfloat16")
    assert made.dtype == torch.bfloat16 and torch.equal(made, (codes.float() * 0.5).bfloat16())


class ByDlpack:
    """An array that shows itself by DLPack alone."""

    def __init__(self, array):
        self._lent = tc.dlpack(array)

    def __dlpack_device__(self):
        return self._lent.__dlpack_device__()

    def __dlpack__(self, **wanted):
        return self._lent.__dlpack__(**wanted)


def torch_view(array, dtype=None):
    """A tensor of the same numbers that is not contiguous."""
    wide = torch.from_numpy(np.repeat(np.atleast_1d(array)[..., None], 2, -1))
    return (wide if dtype is None else wide.to(dtype))[..., 0]


NVFP4 = (codes_of(6, 16), codes_of(6, 2) & 0x77, np.float32(0.375))


@pytest.mark.parametrize("spelling", ["modelopt", "compressed-tensors"])
@pytest.mark.parametrize(
    "as_given",
    [
        lambda x: torch.as_tensor(x),
        lambda x: torch.as_tensor(x).to(torch.bfloat16) if np.asarray(x).dtype == F32 else torch.as_tensor(x),
        lambda x: torch.as_tensor(x, dtype=torch.float64) if np.asarray(x).dtype == F32 else torch_view(x),
        lambda x: torch_view(x, torch.bfloat16) if np.asarray(x).dtype == F32 else torch_view(x),
        lambda x: torch.nn.Parameter(torch.as_tensor(x)) if np.asarray(x).dtype == F32 else torch.as_tensor(x),
        lambda x: ByDlpack(np.atleast_1d(x)),
        lambda x: ByDlpack(np.atleast_1d(x).astype(ml_dtypes.bfloat16)) if np.asarray(x).dtype == F32 else ByDlpack(x),
        lambda x: np.repeat(np.atleast_1d(x), 2, -1)[..., ::2],
        lambda x: x if np.asarray(x).dtype != F32 else float(x),
    ],
    ids="torch bfloat16 float64 torch-view parameter dlpack dlpack-bfloat16 numpy-view number".split(),
)
def test_every_argument_may_be_a_tensor(spelling, as_given):
    codes, scales, factor = NVFP4
    expected = tc.dequantize(codes, scales, "nvfp4", global_scale=factor, spelling=spelling, dtype="float32")
    given = [as_given(x) for x in NVFP4]
    made = tc.dequantize(given[0], given[1], "nvfp4", global_scale=given[2], spelling=spelling, dtype="float32")
    assert isinstance(made, torch.Tensor) == isinstance(given[0], torch.Tensor)
    same(np.asarray(made), expected)


@pytest.mark.parametrize("as_given", [torch.as_tensor, ByDlpack, lambda x: torch_view(x, torch.bfloat16)])
def test_tables_and_zero_points_may_be_tensors(as_given):
    packed, absmax = codes_of(64, 1), scales_of(2)
    table = RANDOM.standard_normal(16).astype(ml_dtypes.bfloat16).astype(F32)
    expected = tc.dequantize(packed, absmax, "nf4", shape=(2, 64), table=table)
    same(np.asarray(tc.dequantize(packed, absmax, "nf4", shape=(2, 64), table=as_given(table))), expected)
    codes, scales, zeros = RANDOM.integers(-9, 9, (2, 8), np.int32), scales_of(2, 1), codes_of(2, 1).view(np.int8)
    expected = tc.dequantize(codes, scales, "int4-group", block=64, zero_points=zeros)
    same(np.asarray(tc.dequantize(codes, scales, "int4-group", block=64, zero_points=torch_view(zeros))), expected)


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    codes, scales, factor = NVFP4
    expected = tc.dequantize(codes, scales, "nvfp4", global_scale=factor, dtype="bfloat16")
    made = tc.dequantize(*map(jax.numpy.asarray, (codes, scales)), "nvfp4", dtype="bfloat16",
                         global_scale=jax.numpy.asarray(factor, jax.numpy.bfloat16))  # fmt: skip
    assert isinstance(made, jax.Array)
    same(np.asarray(made), expected)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"scales": np.zeros((1, 2), F32)}, "2 scales, where the blocks need 1"),
        ({"scales": np.zeros((1, 1), np.int32)}, "scales of type int32"),
        ({"shape": (64, 65)}, "take"),
        ({"shape": (2**62, 2**62)}, "more than 2\\^64 elements"),
        ({"block": (-1, 4)}, "negative"),
        ({"dtype": "int8"}, "the target is no floating-point type"),
        ({"scheme": "nvfp4", "scales": np.zeros((64, 8), np.uint8)},
         "global_scale= is missing, which multiplies .*weight_scale_2.*or 1 if there is none"),
        ({"scheme": "nvfp4", "scales": np.zeros((64, 8), np.uint8), "spelling": "compressed-tensors"},
         "global_scale= is missing, which divides .*weight_global_scale"),
        ({"scheme": "nvfp4", "scales": np.zeros((64, 8), np.uint8), "global_scale": [1, 2]}, "is not 1 or 1 numbers"),
        ({"scheme": "q4_k", "scales": None}, "no whole blocks"),
    ],
)
def test_sizes_that_contradict_each_other(change, message):
    given = {"codes": codes_of(64, 64), "scales": np.zeros((1, 1), F32), "scheme": "fp8-block", **change}
    with pytest.raises(tc.CastError, match=message):
        tc.dequantize(**given)


def test_names():
    with pytest.raises(ValueError, match='no block format "nvfp5"; there are fp8-tensor, .*q4_k'):
        tc.dequantize(codes_of(1, 16), scales_of(1, 1), "nvfp5")
    with pytest.raises(ValueError, match='"nvfp4" of "gptq"; there are nvfp4 of modelopt, nvfp4 of compressed-tensors'):
        tc.dequantize(codes_of(1, 16), scales_of(1, 1), "nvfp4", spelling="gptq")
    assert {row["scheme"] for row in tc.block_formats()} >= {"fp8-block", "mxfp4", "nvfp4", "gptq-4", "nf4", "q6_k"}
