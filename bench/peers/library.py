# SPDX-License-Identifier: Apache-2.0
"""The shared library through ctypes: no Python package between the clock and the conversion."""

import ctypes

import numpy

class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)]
    _fields_ += [
        (name, ctypes.c_int32)
        for name in (
            "opset saturate round_mode out_of_range rounding invalid fnuz_inf float_string threads".split()
        )
    ]
    _fields_ += [("scale", ctypes.c_double)]


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.tc_storage_bytes.restype = ctypes.c_size_t
        self.lib.tc_storage_bytes.argtypes = [ctypes.c_int32, ctypes.c_size_t]
        self.lib.tc_dtype_parse.argtypes = [ctypes.c_char_p]
        self.lib.tc_last_error.restype = ctypes.c_char_p
        self.lib.tc_version.restype = ctypes.c_char_p
        pointer, number = ctypes.c_void_p, ctypes.c_int32
        self.lib.tc_cast.argtypes = [pointer, number, pointer, number, ctypes.c_size_t, pointer]
        self.lib.tc_dtype_name.restype = ctypes.c_char_p
        codes = (code for code in range(64) if self.lib.tc_storage_bytes(code, 8))  # none for string and unknown ones
        self.code = {self.lib.tc_dtype_name(code).decode(): code for code in codes}

    def options(self, **fields):
        options = Options()
        self.lib.tc_cast_options_init(ctypes.byref(options))
        for name, value in fields.items():
            setattr(options, name, value)
        return options

    def storage_bytes(self, dtype, count):
        return self.lib.tc_storage_bytes(self.code[dtype], count)

    def bits(self, dtype):
        return self.storage_bytes(dtype, 8)

    def cast(self, src, source, dst, target, count, options=None):
        status = self.lib.tc_cast(
            src.ctypes.data,
            self.code[source],
            dst.ctypes.data,
            self.code[target],
            count,
            None if options is None else ctypes.byref(options),
        )
        if status:
            raise RuntimeError(self.lib.tc_last_error().decode())

    def numbers(self, dtype, count):
        """`count` elements as packed bytes: normal numbers of standard deviation 8, the same in every run."""
        pattern_count = min(count, 1 << 16)
        drawn = numpy.random.default_rng(1).normal(0.0, 8.0, pattern_count)
        pattern = numpy.empty(self.storage_bytes(dtype, pattern_count), numpy.uint8)
        if dtype == "float64":
            pattern = drawn.view(numpy.uint8)
        else:
            self.cast(drawn, "float64", pattern, dtype, pattern_count)
        return numpy.resize(pattern, self.storage_bytes(dtype, count))
