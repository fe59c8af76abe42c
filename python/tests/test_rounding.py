# SPDX-License-Identifier: Apache-2.0
"""The words of `rounding` against gfloat, which has P3109's modes, and against MPFR."""

import gfloat
import gmpy2
import ml_dtypes
import numpy as np
import pytest
from arrays import samples
from gfloat import RoundMode, formats

import tensorcast as tc

P3109 = {"binary8p4se": (4, gfloat.Domain.Extended), "binary8p3se": (3, gfloat.Domain.Extended),
         "float8_e4m3fnuz": (4, gfloat.Domain.Finite), "float8_e5m2fnuz": (3, gfloat.Domain.Finite)}  # fmt: skip
OCP = {"float8_e4m3fn": formats.format_info_ocp_e4m3, "float8_e5m2": formats.format_info_ocp_e5m2,
       "float6_e2m3fn": formats.format_info_ocp_e2m3, "float6_e3m2fn": formats.format_info_ocp_e3m2,
       "float4_e2m1fn": formats.format_info_ocp_e2m1, "float16": formats.format_info_binary16,
       "bfloat16": formats.format_info_bfloat16}  # fmt: skip
FORMATS = {
    **{name: formats.format_info_p3109(8, precision, domain=domain) for name, (precision, domain) in P3109.items()},
    **OCP,
}
CASES = [  # float4 and float6 always saturate, and types of 16 bits never
    (name, saturate)
    for name, theirs in FORMATS.items()
    for saturate in (True, False)
    if (saturate or theirs.num_nans) and not (saturate and theirs.k == 16)
]
MODES = {"nearest_even": RoundMode.TiesToEven, "nearest_away": RoundMode.TiesToAway, "toward_zero": RoundMode.TowardZero,
         "toward_positive": RoundMode.TowardPositive, "toward_negative": RoundMode.TowardNegative,
         "stochastic": RoundMode.StochasticFastest}  # fmt: skip
NUMBERS = np.concatenate([
    samples("float16").astype(np.float64),
    samples("bfloat16").astype(np.float32).astype(np.float64),
    np.float32(np.random.default_rng(3).normal(0, 30, 20_000)).astype(np.float64),
])  # fmt: skip
NUMBERS = NUMBERS[~np.isnan(NUMBERS)]


def words(count, seed):
    """The random words, of which a number of 32 bits below the last place takes each apart."""
    blocks = np.zeros((-(-count // 4), 4), np.uint64)
    blocks[:, 0] = np.arange(len(blocks))
    keys, low = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = blocks[:, 0] * np.uint64(0xD2511F53), blocks[:, 2] * np.uint64(0xCD9E8D57)
        blocks = np.stack([(second >> np.uint64(32)) ^ blocks[:, 1] ^ np.uint64(keys[0]), second & low,
                           (first >> np.uint64(32)) ^ blocks[:, 3] ^ np.uint64(keys[1]), first & low], axis=1)  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return blocks.reshape(-1)[:count].astype(np.int64)


def same(ours, theirs):
    return ((ours == theirs) & (np.signbit(ours) == np.signbit(theirs))) | (np.isnan(ours) & np.isnan(theirs))


@pytest.mark.parametrize("word", MODES)
@pytest.mark.parametrize(("name", "saturate"), CASES)
def test_words_are_the_modes_of_gfloat(name, word, saturate):
    theirs = FORMATS[name]
    numbers = NUMBERS[np.isfinite(NUMBERS)] if name == "bfloat16" else NUMBERS
    options = {"seed": 0x123456789} if word == "stochastic" else {}
    given = {"srbits": words(numbers.size, 0x123456789), "srnumbits": 32} if word == "stochastic" else {}
    with np.errstate(all="ignore"):
        expected = gfloat.round_ndarray(theirs, numbers, MODES[word], sat=saturate, **given)
    only_codes = name.startswith("binary")
    result = tc.cast(numbers, name, packed=only_codes, rounding=word, saturate=saturate, **options)
    found = tc.cast(result, "float64", from_=name, packed=True) if only_codes else tc.cast(result, "float64")
    wrong = ~same(found, expected)
    assert not wrong.any(), (numbers[wrong][:5], found[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("word", ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative"])
def test_words_are_the_modes_of_mpfr(word):
    """float64 to float32, which gfloat does not round to; midpoints and their neighbours among the numbers."""
    random = np.random.default_rng(5)
    values = random.normal(0, 1, 3000) * 2.0 ** random.integers(-150, 128, 3000)
    single = values.astype(np.float32).astype(np.float64)
    following = np.nextafter(single.astype(np.float32), np.float32(np.inf)).astype(np.float64)
    middles = (single + following) / 2
    values = np.concatenate([values, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    values = values[np.abs(values) < 3.4e38]
    mode = {"nearest_even": gmpy2.RoundToNearest, "nearest_away": gmpy2.RoundToNearest, "toward_zero": gmpy2.RoundToZero,
            "toward_positive": gmpy2.RoundUp, "toward_negative": gmpy2.RoundDown}[word]  # fmt: skip
    found = tc.cast(values, "float32", rounding=word)
    with gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True, round=mode):
        expected = np.array([float(gmpy2.mpfr(x)) for x in values.tolist()])
    if word == "nearest_away":  # MPFR's contexts lack it: of two nearest, the greater magnitude
        below, above = (tc.cast(values, "float32", rounding=w).astype(np.float64) for w in ("toward_negative", "toward_positive"))
        is_tie = (below < above) & (values - below == above - values)
        assert is_tie.sum() > 1000
        expected = np.where(is_tie, np.where(values > 0, above, below), expected)
    assert same(found.astype(np.float64), expected).all()


def test_seeds_have_64_bits():
    x = np.full(64, 1.5, np.float32)
    for seed in (2**63, 2**64 - 1, np.uint64(2**64 - 1)):
        made = tc.cast(x, "int8", rounding="stochastic", seed=seed)
        assert np.array_equal(made, 1 + (words(64, int(seed)) >= 2**31))
    for seed in (2**64, -1, True, 1.0):
        with pytest.raises(tc.CastError, match="seed must be a whole number of 64 bits"):
            tc.cast(x, "int8", rounding="stochastic", seed=seed)


def test_tensors_of_a_mapping_have_the_random_words_of_their_names(tmp_path):
    tensors = {name: np.linspace(0, 1, 999, dtype=np.float32) for name in ("a", "b")}
    options = {"rounding": "stochastic", "seed": 3}
    made = tc.cast(tensors, "bfloat16", **options)
    assert not np.array_equal(made["a"].view(np.uint16), made["b"].view(np.uint16))
    tc.save(tmp_path / "in.safetensors", tensors)
    tc.convert(tmp_path / "in.safetensors", tmp_path / "out.safetensors", "bfloat16", **options)
    for name, tensor in tc.load(tmp_path / "out.safetensors").items():
        assert np.array_equal(tensor.view(np.uint16), made[name].view(np.uint16))


def test_random_words_are_counted_in_c_order_whatever_the_strides():
    x = np.linspace(0, 1, 4 * 6 * 5, dtype=np.float32).reshape(4, 6, 5)
    options = {"rounding": "stochastic", "seed": 3}
    expected = tc.cast(x, "bfloat16", **options).view(np.uint16)
    turned = np.asfortranarray(x)
    out = np.empty(x.shape, ml_dtypes.bfloat16, order="F")
    results = [tc.cast(turned, "bfloat16", order="K", **options), tc.cast(turned, "bfloat16", out=out, **options)]
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(x).permute(2, 0, 1).contiguous().permute(1, 2, 0)
    results.append(tc.cast(tensor, "bfloat16", **options).contiguous().view(torch.int16).numpy().view(np.uint16))
    for result in results:
        assert np.array_equal(np.ascontiguousarray(result).view(np.uint16), expected)
