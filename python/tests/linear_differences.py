# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear beside ONNX Runtime and ONNX's reference: every difference is one of the classes below.

docs/differences.md has the page; differences.py writes it. Our results are exact by the operators' texts (docs/nodes.md).
"""

import dataclasses

import block_samples
import ml_dtypes
import numpy as np
from onnx import TensorProto as T
from onnx import helper

NUMPY = {T.FLOAT: np.float32, T.FLOAT16: np.float16, T.INT8: np.int8, T.UINT8: np.uint8, T.INT16: np.int16,
         T.UINT16: np.uint16, T.INT32: np.int32, T.BFLOAT16: ml_dtypes.bfloat16,
         T.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, T.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
         T.FLOAT8E5M2: ml_dtypes.float8_e5m2, T.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
         T.FLOAT4E2M1: ml_dtypes.float4_e2m1fn}  # fmt: skip
INTEGERS = [T.INT8, T.UINT8, T.INT16, T.UINT16]
FLOAT8 = [T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ]
NAMES = {value: name.lower() for name, value in T.DataType.items()}


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    numbers: int  # the type of x and the scale of QuantizeLinear, of the scale and y of DequantizeLinear
    codes: int
    scale: float = 1.0
    zero: int = 0
    opset: int = 21
    saturate: int = 1
    precision: int = 0
    block: int = 0

    @property
    def label(self):
        types = [NAMES[self.numbers], NAMES[self.codes]]
        return " to ".join(types if self.op == "QuantizeLinear" else types[::-1])

    @property
    def options(self):
        return {key: value for key, value in (("saturate", self.saturate), ("precision", self.precision)) if value != (
            key == "saturate")}  # fmt: skip


def _cases():
    quantize, dequantize = "QuantizeLinear", "DequantizeLinear"
    for opset in (10, 13, 19, 21, 23):
        yield Case(quantize, T.FLOAT, T.INT8, 0.1, 3, opset)
        yield Case(dequantize, T.FLOAT, T.UINT8, 0.1, 3, opset)
    for numbers in (T.FLOAT, T.FLOAT16, T.BFLOAT16):
        for codes in INTEGERS:
            yield Case(quantize, numbers, codes, 0.1, 3)
            yield Case(dequantize, numbers, codes, 0.1, 3)
        for codes in FLOAT8:
            yield Case(quantize, numbers, codes, 0.1)
            yield Case(dequantize, numbers, codes, 0.1)
        yield Case(dequantize, numbers, T.INT32, 0.1)
        yield Case(dequantize, numbers, T.FLOAT4E2M1, 0.1, opset=23)
        yield Case(dequantize, numbers, T.INT8, 0.1, 3, block=32)
    for codes in FLOAT8:
        yield Case(quantize, T.FLOAT, codes, saturate=0)
    yield Case(quantize, T.FLOAT, T.INT8, 0.1, 3, opset=23, precision=T.FLOAT16)
    yield Case(quantize, T.FLOAT, T.INT8, 0.1, 3, block=32)


def numbers_of(dtype):
    bell = block_samples.sample("normal", "float32").ravel()[:4000]
    special = [0, -0.0, 1e30, -1e30, 65504, 448, 464, 465, 480, 57344, 61440, 1e-40, np.inf, -np.inf, np.nan]
    x = np.concatenate([bell * 2500, bell * 25, np.arange(-300, 300) / 2, np.arange(-40, 40) / 4, special])
    x = np.resize(x, 32 * (len(x) // 32 + 1)).astype(np.float32)
    with np.errstate(over="ignore"):
        return x.astype(NUMPY[dtype]).reshape(32, -1)


def codes_of(dtype):
    if dtype == T.INT32:
        raw = np.random.PCG64(1).random_raw(4096)
        return (raw >> np.uint64(32)).astype(np.uint32).view(np.int32).reshape(32, -1)
    bits = 4 if dtype == T.FLOAT4E2M1 else 8 * np.dtype(NUMPY[dtype]).itemsize
    codes = np.resize(np.arange(1 << bits), max(1 << bits, 64)).astype(np.uint16 if bits == 16 else np.uint8)
    return codes.view(NUMPY[dtype]).reshape(32, -1)


def _tensor(name, dtype, array):
    array = np.asarray(array)
    raw = array.tobytes()
    if dtype == T.FLOAT4E2M1:
        codes = array.view(np.uint8).ravel()
        raw = (codes[0::2] | codes[1::2] << 4).tobytes()
    return helper.make_tensor(name, dtype, array.shape, raw, raw=True)


def model_of(case, x):
    """A model without inputs. Float8 results become float32, which both runtimes give exactly."""
    to, of = (case.codes, case.numbers) if case.op == "QuantizeLinear" else (case.numbers, case.codes)
    scales = np.full((), case.scale)
    attributes = dict(case.options)
    if case.block:
        attributes |= {"axis": 1, "block_size": case.block}
        columns = -(-x.shape[1] // case.block)
        scales = case.scale * (1 + np.arange(x.shape[0] * columns) % 7).reshape(x.shape[0], columns)
    scales = scales.astype(np.float32).astype(NUMPY[case.numbers])
    initializers = [_tensor("x", of, x), _tensor("s", case.numbers, scales)]
    inputs = ["x", "s"]
    if case.codes not in (T.INT32, T.FLOAT4E2M1):
        zeros = np.full(scales.shape, case.zero).astype(np.float32).astype(NUMPY[case.codes])
        initializers.append(_tensor("z", case.codes, zeros))
        inputs.append("z")
    nodes = [helper.make_node(case.op, inputs, ["r"], **attributes)]
    if to in FLOAT8 or to == T.BFLOAT16:
        nodes.append(helper.make_node("Cast", ["r"], ["y"], to=T.FLOAT))
        to = T.FLOAT
    else:
        nodes[0].output[0] = "y"
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("y", to, x.shape)], initializers)
    opsets = [helper.make_opsetid("", case.opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11 if case.opset >= 23 else 10)


def ours(model):
    import tensorcast.onnx_backend as backend

    return backend.run_model(model, [])[0]


def runtime(model):
    """None: there is no kernel."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        return session.run(None, {})[0]
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):
            return None
        raise


def reference(model):
    """None: it runs no such node."""
    from onnx.reference import ReferenceEvaluator

    try:
        return np.asarray(ReferenceEvaluator(model).run(None, {})[0])
    except (RuntimeError, TypeError):
        return None


def _is_integer(case):
    return case.op == "QuantizeLinear" and case.codes in INTEGERS


def _quotient(case, x):
    with np.errstate(over="ignore"):
        return x.astype(np.float32) / np.float32(case.scale)


# The operators' rule, what ONNX Runtime does, and which elements it explains.
RUNTIME_CLASSES = [
    ("NaN to integers", "NaN becomes the lowest integer; by QuantizeLinear's text nothing is said, and ours is the zero point.",
     lambda case, x, a, b: _is_integer(case) & np.isnan(x.astype(np.float32))),
    ("The quotient's precision", "It divides float16 in float32 and rounds that quotient; by the text it is first rounded to "
     "the scale's type, or to `precision`, which is ignored.",
     lambda case, x, a, b: (case.op == "QuantizeLinear") & ((case.numbers == T.FLOAT16) | (case.precision != 0)) & (x != 0)),
    ("-0 to float8", "-0 stays -0; by the text the zero point, +0, is added first.",
     lambda case, x, a, b: (case.op == "QuantizeLinear") & (case.codes in FLOAT8) & (a == 0) & (b == 0)),
    ("float8 without saturation", "480 becomes 448, and numbers beyond float8_e5m2 NaN; by the text of Cast they are NaN, and "
     "infinity in float8_e5m2.",
     lambda case, x, a, b: (case.op == "QuantizeLinear") & (case.saturate == 0) & ~np.isfinite(a)),
    ("Infinity to the fnuz types", "It becomes the largest number; by Cast 19's text it is NaN (`fnuz_inf`).",
     lambda case, x, a, b: (case.op == "QuantizeLinear") & (case.codes in (T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2FNUZ))
     & np.isinf(x.astype(np.float32))),
    ("Zero points of 16 bits with float16", "x - zero point is rounded to float16, then the product; ours rounds once.",
     lambda case, x, a, b: (case.op == "DequantizeLinear") & (case.numbers == T.FLOAT16) & (case.codes in (T.INT16, T.UINT16))
     & (np.abs(x.astype(np.float64) - case.zero) > 2048)),
    ("int32", "x is rounded to float32, then the product; ours rounds once.",
     lambda case, x, a, b: (case.op == "DequantizeLinear") & (case.codes == T.INT32) & (np.abs(x.astype(np.float64)) > 2**24)),
]  # fmt: skip


REFERENCE_CLASSES = [
    RUNTIME_CLASSES[0],
    ("Quotients beyond int32", "The quotient becomes int32 first, which wraps: the lowest integer, or 0; ours saturates.",
     lambda case, x, a, b: _is_integer(case) & ~(np.abs(_quotient(case, x)) < 2.0**31)),
    ("float16 quotients that are infinite", "The quotient is rounded to float16 and infinite, and becomes the lowest integer; "
     "ours saturates.",
     lambda case, x, a, b: _is_integer(case) & (case.numbers == T.FLOAT16) & (_quotient(case, x) > 65504)),
    ("-0 to float8", "-0 stays -0; by the text the zero point, +0, is added first.",
     lambda case, x, a, b: (case.op == "QuantizeLinear") & (case.codes in FLOAT8) & (a == 0) & (b == 0)),
    ("Infinity to the fnuz types", "It becomes the largest number, as do float16 quotients that are infinite; by Cast 19's text it "
     "is NaN (`fnuz_inf`).",
     lambda case, x, a, b: (case.op == "QuantizeLinear") & (case.codes in (T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2FNUZ))
     & (np.abs(_quotient(case, x)) > 65504)),
    ("Zero points of 16 bits with float16", "x - zero point is rounded to float16, then the product; ours rounds once.",
     RUNTIME_CLASSES[-2][2]),
    ("int32", "x is rounded to float32, then the product; ours rounds once.", RUNTIME_CLASSES[-1][2]),
]  # fmt: skip
PEERS = [("ONNX Runtime", runtime, RUNTIME_CLASSES), ("ONNX's reference", reference, REFERENCE_CLASSES)]


@dataclasses.dataclass
class Row:
    number: int
    case: Case
    count: int
    example: tuple


@dataclasses.dataclass
class Findings:
    title: str
    classes: list
    rows: list
    missing: list  # cases that the peer does not run
    unknown: list  # lines about what no class explains
    compared: int = 0


def measure_all():
    return [measure(*peer) for peer in PEERS]


def measure(title, theirs, classes):
    rows, missing, unknown, compared = [], [], [], 0
    for case in _cases():
        x = numbers_of(case.numbers) if case.op == "QuantizeLinear" else codes_of(case.codes)
        model = model_of(case, x)
        b = theirs(model)
        if b is None:
            missing.append(case)
            continue
        a = np.asarray(ours(model))
        compared += a.size
        kind = f"u{a.dtype.itemsize}"
        same = a.view(kind) == b.view(kind)
        if a.dtype.kind == "f":
            same |= np.isnan(a) & np.isnan(b)
        left = ~same
        for number, (_, _, explains) in enumerate(classes):
            with np.errstate(invalid="ignore"):
                held = left & explains(case, x, a, b)
            if held.any():
                at = tuple(np.argwhere(held)[0])
                rows.append(Row(number, case, int(held.sum()), (x[at], a[at], b[at])))
                left &= ~held
        for at in np.argwhere(left)[:3]:
            unknown.append(f"{title}: {case.op} {case.label} {case}: {x[tuple(at)]} is {a[tuple(at)]}, theirs {b[tuple(at)]}")
    return Findings(title, classes, rows, missing, unknown, compared)


def page(findings):
    lines = [f"## QuantizeLinear and DequantizeLinear of {findings.title}", "",
             f"{findings.compared} elements, in opsets 10 to 23, with scales of the tensor and of blocks, are compared: "
             "NaN counts as equal whatever its sign.", ""]  # fmt: skip
    for number, (title, text, _) in enumerate(findings.classes):
        found = [row for row in findings.rows if row.number == number]
        if not found:
            continue
        lines += [f"**{title}.** {text}", "", "| operator | types | opset | scale, options | differ | x | ours | theirs |",
                  "|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for row in found:
            case, shown = row.case, [f"{float(value):.9g}" for value in row.example]
            scale = f"{case.scale}, blocks" if case.block else f"{case.scale}"
            for key, value in case.options.items():
                scale += f", {key} {NAMES[value] if key == 'precision' else value}"
            lines.append(f"| {case.op} | {case.label} | {case.opset} | {scale} | {row.count} | {' | '.join(shown)} |")
        lines.append("")
    labels = {f"{case.op} {case.label} {case.opset}": None for case in findings.missing}
    lines += ["**Not run**, as it has no implementation on a CPU: " + ", ".join(labels) + ".", ""]
    return "\n".join(lines)
