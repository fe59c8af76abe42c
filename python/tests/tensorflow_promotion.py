# SPDX-License-Identifier: Apache-2.0
"""The golden matrices of TensorFlow's rules against TensorFlow, which needs an environment of its own for its size.

python -m pip install tensorflow-cpu==2.21.0
python tensorflow_promotion.py
"""

import itertools
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import flexible_dtypes  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "promotion"
SHORT = dict(
    f64="float64", f32="float32", f16="float16", bf16="bfloat16", i64="int64", i32="int32", i16="int16", i8="int8",
    u64="uint64", u32="uint32", u16="uint16", u8="uint8", bool="bool",
)  # fmt: skip


def golden(name):
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()[1:]
    columns = lines[0].split()
    rows = [line.split() for line in lines[1:] if len(line.split()) == len(columns) + 1]
    return {(row[0], column): cell for row in rows for column, cell in zip(columns, row[1:])}


def main():
    wrong = 0
    for name, mode in (("tensorflow", "safe"), ("tensorflow_unsafe", "all")):
        tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
        table = golden(name)
        assert len(table) == len(SHORT) ** 2
        for a, b in itertools.product(SHORT, SHORT):
            try:
                common = flexible_dtypes.result_type(tf.zeros([2], SHORT[a]), tf.zeros([2], SHORT[b]))[0].name
            except (TypeError, NotImplementedError):
                common = "."
            if SHORT.get(table[a, b], ".") != common:
                wrong += 1
                print(f"{mode}: {a} and {b}: the table says {table[a, b]}, TensorFlow {common}")
    print(f"tensorflow {tf.__version__}: {2 * len(SHORT) ** 2} pairs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
