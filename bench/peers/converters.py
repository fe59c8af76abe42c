# SPDX-License-Identifier: Apache-2.0
"""The peers. Each one makes, for a pair of types, a function that converts from and to memory that exists already.

`prepare(source, target, src, dst, count)` gets packed bytes and returns that function; it raises where the peer cannot.
Peers that keep elements below a byte in a byte each, or own their memory, bring `result()` to read the codes back.
"""

import re

import numpy

ONE_THREAD = 1
PACKED = re.compile(r"u?int[24]$|float[46]_")  # types that tensorcast packs and most others keep in a byte each


class Conversion:
    def __init__(self, run, result=None):
        self.run = run
        self.result = result  # the packed result, where it is not in `dst`


class NumPy:
    """NumPy with ml_dtypes: `numpy.copyto`, which is `astype` into an array that exists."""

    name = "numpy + ml_dtypes"

    def __init__(self):
        import ml_dtypes

        self.version = f"{numpy.__version__} + {ml_dtypes.__version__}"
        self.extension = ml_dtypes

    def dtype(self, name):
        return numpy.dtype(name if hasattr(numpy, name) or name == "bool" else getattr(self.extension, name))

    def prepare(self, source, target, src, dst, count):
        from_type, to_type = self.dtype(source), self.dtype(target)
        if PACKED.match(source) or PACKED.match(target):
            raise TypeError("keeps an element in a byte each")
        x, y = src.view(from_type)[:count], dst.view(to_type)[:count]

        def run():
            with numpy.errstate(all="ignore"):
                numpy.copyto(y, x, casting="unsafe")

        return Conversion(run)


class PyTorch:
    """`Tensor.copy_` on the CPU."""

    name = "PyTorch"

    def __init__(self):
        import torch

        torch.set_num_threads(ONE_THREAD)
        self.torch, self.version = torch, torch.__version__

    def prepare(self, source, target, src, dst, count):
        if PACKED.match(source) or PACKED.match(target):
            raise TypeError("has no such conversion")
        x = self.torch.from_numpy(src).view(getattr(self.torch, source))[:count]
        y = self.torch.from_numpy(dst).view(getattr(self.torch, target))[:count]
        return Conversion(lambda: y.copy_(x))


class OnnxRuntime:
    """The CPU provider's Cast, with inputs and outputs bound to memory."""

    name = "ONNX Runtime"
    spellings = {
        "float64": "DOUBLE",
        "float32": "FLOAT",
        "float8_e4m3fn": "FLOAT8E4M3FN",
        "float8_e4m3fnuz": "FLOAT8E4M3FNUZ",
        "float8_e5m2": "FLOAT8E5M2",
        "float8_e5m2fnuz": "FLOAT8E5M2FNUZ",
        "float8_e8m0fnu": "FLOAT8E8M0",
        "float4_e2m1fn": "FLOAT4E2M1",
    }

    def __init__(self):
        import onnx
        import onnxruntime

        self.onnx, self.runtime, self.version = onnx, onnxruntime, onnxruntime.__version__
        onnxruntime.set_default_logger_severity(4)

    def number(self, name):
        return getattr(self.onnx.TensorProto, self.spellings.get(name, name.upper()))

    def prepare(self, source, target, src, dst, count):
        helper = self.onnx.helper
        from_type, to_type = self.number(source), self.number(target)
        node = helper.make_node("Cast", ["x"], ["y"], to=to_type)
        x = helper.make_tensor_value_info("x", from_type, [count])
        y = helper.make_tensor_value_info("y", to_type, [count])
        graph = helper.make_graph([node], "cast", [x], [y])
        newest = 25 if "2" in (source[-1], target[-1]) and "int2" in source + target else 23
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", newest)], ir_version=11)
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = ONE_THREAD
        session = self.runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        binding.bind_input("x", "cpu", 0, from_type, [count], src.ctypes.data)
        binding.bind_output("y", "cpu", 0, to_type, [count], dst.ctypes.data)
        return Conversion(lambda: session.run_with_iobinding(binding))


class OpenVINO:
    """Convert on the CPU device, with tensors over memory."""

    name = "OpenVINO"
    spellings = {
        "float64": "f64",
        "float32": "f32",
        "float16": "f16",
        "bfloat16": "bf16",
        "float8_e4m3fn": "f8e4m3",
        "float8_e5m2": "f8e5m2",
        "float8_e8m0fnu": "f8e8m0",
        "float4_e2m1fn": "f4e2m1",
        "bool": "boolean",
    }

    def __init__(self):
        import openvino
        from openvino import opset15

        self.openvino, self.opset, self.version = openvino, opset15, openvino.__version__.split("-")[0]
        self.core = openvino.Core()

    def type_of(self, name):
        short = self.spellings.get(name) or name.replace("uint", "u").replace("int", "i")
        return getattr(self.openvino.Type, short)

    def prepare(self, source, target, src, dst, count):
        x = self.opset.parameter([count], self.type_of(source))
        model = self.openvino.Model([self.opset.convert(x, self.type_of(target))], [x])
        config = {"INFERENCE_NUM_THREADS": ONE_THREAD, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
        compiled = self.core.compile_model(model, "CPU", config)
        if (compiled.input(0).element_type, compiled.output(0).element_type) != (
            self.type_of(source),
            self.type_of(target),
        ):
            raise TypeError("changes the types of the model")
        request = compiled.create_infer_request()
        shape = self.openvino.Shape([count])
        request.set_input_tensor(self.openvino.Tensor(src, shape, self.type_of(source)))
        request.set_output_tensor(self.openvino.Tensor(dst, shape, self.type_of(target)))
        return Conversion(request.infer)


class NumKong:
    """`numkong.astype` into memory that exists."""

    name = "NumKong"
    spellings = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
    has = {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"} | {
        f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
    }

    def __init__(self):
        import importlib.metadata

        import numkong

        self.numkong, self.version = numkong, importlib.metadata.version("numkong")

    def prepare(self, source, target, src, dst, count):
        if not {source, target} <= self.has:
            raise TypeError("has no such conversion")
        from_name, to_name = self.spellings.get(source, source), self.spellings.get(target, target)
        x, y = self.tensor(src, source, from_name, count), self.tensor(dst, target, to_name, count)
        astype = self.numkong.astype
        return Conversion(lambda: astype(x, to_name, out=y), lambda: numpy.frombuffer(y, numpy.uint8))

    def tensor(self, data, name, spelled, count):
        """Over the same memory where NumPy has the type, else a tensor of its own with the same codes."""
        if hasattr(numpy, name):
            return data.view(name)[:count]
        tensor = self.numkong.zeros((count,), dtype=spelled)
        numpy.frombuffer(tensor, numpy.uint8)[:] = data[: numpy.frombuffer(tensor, numpy.uint8).size]
        return tensor


ALL = [NumPy, PyTorch, OnnxRuntime, OpenVINO, NumKong]
