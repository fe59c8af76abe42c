# SPDX-License-Identifier: Apache-2.0
"""Other implementations of Cast, each as a function from codes to codes.

Codes are flat arrays of unsigned integers, one an element, whatever the type. A peer's ``cast`` returns the target's
codes, or raises NoCast where the peer has no such conversion.
"""

import ctypes
import functools

import ml_dtypes
import numpy as np

import tensorcast as tc

# Types of Cast-25, which is what the peers' versions know.
NAMES = [row.name for row in tc.dtypes() if row.name != "string" and 0 < row.since_opset <= 25]
BITS = {row.name: row.bits for row in tc.dtypes() if row.name in NAMES and row.bits < 8}
ONNX = {row.name: row.onnx for row in tc.dtypes()}
FLOAT8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


class NoCast(Exception):
    """The peer does not have this pair of types."""


@functools.cache
def numpy_type(name):
    return np.dtype(name) if hasattr(np, name) else np.dtype(getattr(ml_dtypes, name))


def bits_of(name):
    return BITS.get(name) or 8 * numpy_type(name).itemsize


def code_type(name):
    return np.dtype(f"u{numpy_type(name).itemsize}")


def codes_of(array, name):
    codes = np.ascontiguousarray(array).reshape(-1).view(code_type(name))
    return codes & codes.dtype.type((1 << BITS[name]) - 1) if name in BITS else codes


def array_of(codes, name):
    return np.ascontiguousarray(codes).view(numpy_type(name))


def packed(codes, name):
    """As ONNX and OpenVINO store them: low bits first."""
    if name not in BITS:
        return np.ascontiguousarray(codes).view(np.uint8)
    rows = np.unpackbits(codes.astype(np.uint8)[:, None], axis=1, bitorder="little")[:, : BITS[name]]
    return np.packbits(rows.reshape(-1), bitorder="little")


def unpacked(storage, name, count):
    if name not in BITS:
        return storage.view(code_type(name))[:count]
    rows = np.unpackbits(storage, bitorder="little")[: count * BITS[name]].reshape(count, BITS[name])
    return np.packbits(rows, axis=1, bitorder="little")[:, 0]


def unsaturated_modes(target):
    """Peers without options: what goes beyond the range becomes NaN or infinity, and a power of two is the nearest."""
    if target in FLOAT8:
        return [{"saturate": False}]
    return [{"saturate": False, "round_mode": "nearest"}] if target == "float8_e8m0fnu" else [{}]


def openvino_modes(target):
    if target == "float8_e8m0fnu":
        return [{"saturate": True, "round_mode": "nearest"}]
    return unsaturated_modes(target)


def onnx_modes(target):
    if target in FLOAT8:
        return [{"saturate": True}, {"saturate": False}]
    if target == "float8_e8m0fnu":
        return [{"saturate": s, "round_mode": r} for s in (True, False) for r in ("up", "down", "nearest")]
    return [{}]


def onnx_model(source, target, options, initializer=None):
    from onnx import helper

    attributes = {"to": ONNX[target]}
    if "saturate" in options:
        attributes["saturate"] = int(options["saturate"])
    if "round_mode" in options:
        attributes["round_mode"] = options["round_mode"]
    node = helper.make_node("Cast", ["x"], ["y"], **attributes)
    inputs = [] if initializer is not None else [helper.make_tensor_value_info("x", ONNX[source], [None])]
    outputs = [helper.make_tensor_value_info("y", ONNX[target], [None])]
    graph = helper.make_graph([node], "cast", inputs, outputs, [] if initializer is None else [initializer])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


class OnnxReference:
    title = "onnx.reference"
    packages = ("onnx",)
    types = NAMES
    modes = staticmethod(onnx_modes)

    def cast(self, codes, source, target, options):
        with np.errstate(all="ignore"):
            (result,) = self._run(array_of(codes, source), source, target, options)
        return codes_of(result, target)

    def cast_from_strings(self, texts, target, options):
        (result,) = self._run(np.array(texts, object), "string", target, options)
        return codes_of(result, target)

    def cast_to_strings(self, codes, source):
        (result,) = self._run(array_of(codes, source), source, "string", {})
        return result.tolist()

    @staticmethod
    def _run(array, source, target, options):
        from onnx.reference import ReferenceEvaluator

        try:
            return ReferenceEvaluator(onnx_model(source, target, options)).run(None, {"x": array})
        except TypeError as error:
            if "Cannot cast array data" in str(error.__cause__ or error):  # a pair that ml_dtypes lacks
                raise NoCast from None
            raise


class MlDtypes:
    title = "NumPy and ml_dtypes"
    packages = ("numpy", "ml_dtypes")
    types = NAMES
    modes = staticmethod(unsaturated_modes)

    def cast(self, codes, source, target, options):
        try:
            with np.errstate(all="ignore"):
                return codes_of(array_of(codes, source).astype(numpy_type(target)), target)
        except TypeError:
            raise NoCast from None


class Torch:
    title = "PyTorch"
    packages = ("torch",)
    types = [name for name in NAMES if name not in BITS]

    @staticmethod
    def modes(target):
        return [{"saturate": True}] if target == "float8_e4m3fn" else unsaturated_modes(target)

    def cast(self, codes, source, target, options):
        import torch

        carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        signed = codes.view(f"i{codes.itemsize}") if codes.itemsize > 1 else codes
        tensor = torch.from_numpy(signed.copy()).view(getattr(torch, source))
        result = tensor.to(getattr(torch, target))
        width = numpy_type(target).itemsize
        return result.view(carrier[width]).numpy().view(code_type(target))


class OnnxRuntime:
    title = "ONNX Runtime"
    packages = ("onnxruntime",)
    types = NAMES
    modes = staticmethod(onnx_modes)

    def cast(self, codes, source, target, options):
        from onnx import helper

        raw = packed(codes, source).tobytes()
        result = self._run(helper.make_tensor("x", ONNX[source], [codes.size], raw, raw=True), source, target, options)
        size = (codes.size * bits_of(target) + 7) // 8
        storage = np.frombuffer(ctypes.string_at(result.data_ptr(), size), np.uint8)
        return unpacked(storage, target, codes.size).copy()

    def cast_from_strings(self, texts, target, options):
        from onnx import helper

        tensor = helper.make_tensor("x", ONNX["string"], [len(texts)], [text.encode() for text in texts])
        result = self._run(tensor, "string", target, options)
        size = (len(texts) * bits_of(target) + 7) // 8
        return unpacked(np.frombuffer(ctypes.string_at(result.data_ptr(), size), np.uint8), target, len(texts)).copy()

    def cast_to_strings(self, codes, source):
        from onnx import helper

        raw = packed(codes, source).tobytes()
        result = self._run(helper.make_tensor("x", ONNX[source], [codes.size], raw, raw=True), source, "string", {})
        return result.numpy().tolist()

    @staticmethod
    def _run(initializer, source, target, options):
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = 1
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        model = onnx_model(source, target, options, initializer).SerializeToString()
        try:
            session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        except Exception as error:
            if "NOT_IMPLEMENTED" in str(error):
                raise NoCast from None
            raise
        return session.run_with_ort_values(None, {})[0]


class OpenVino:
    title = "OpenVINO"
    packages = ("openvino",)
    spelling = dict(
        float64="f64", float32="f32", float16="f16", bfloat16="bf16", float8_e4m3fn="f8e4m3", float8_e5m2="f8e5m2",
        float8_e8m0fnu="f8e8m0", float4_e2m1fn="f4e2m1", int64="i64", int32="i32", int16="i16", int8="i8", int4="i4",
        uint64="u64", uint32="u32", uint16="u16", uint8="u8", uint4="u4", uint2="u2", bool="boolean",
    )  # fmt: skip
    types = list(spelling)
    modes = staticmethod(openvino_modes)

    def cast(self, codes, source, target, options):
        """Its reference evaluation of Convert; what its plugins run may differ from machine to machine."""
        import openvino as ov
        from openvino import opset14

        parameter = opset14.parameter([codes.size], getattr(ov.Type, self.spelling[source]))
        convert = opset14.convert(parameter, self.spelling[target])
        model = ov.Model([opset14.result(convert)], [parameter], "cast")
        tensors = [ov.Tensor(getattr(ov.Type, self.spelling[n]), ov.Shape([codes.size])) for n in (source, target)]
        storage = packed(codes, source)
        self._memory(tensors[0])[: storage.size] = storage
        try:
            model.evaluate([tensors[1]], [tensors[0]])
        except RuntimeError as error:
            if "evaluat" in str(error).lower():
                raise NoCast from None
            raise
        return unpacked(self._memory(tensors[1]).copy(), target, codes.size)

    @staticmethod
    def _memory(tensor):
        """The tensor's bytes as a NumPy array."""
        return tensor.data.reshape(-1).view(np.uint8)


PEERS = [OnnxReference(), MlDtypes(), Torch(), OnnxRuntime(), OpenVino()]
