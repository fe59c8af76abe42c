// help(tensorcast.cast).
#pragma once

namespace tensorcast::python {

// The first line is what inspect.signature() reads.
inline constexpr const char* cast_doc =
    R"(cast(x, /, to, *, out=None, copy=True, order=None, packed=False, from_=None, shape=None, report=False, rules=(), include=(), exclude=(), keep_rank=(), keep_smaller=0, preset=None, raw_codes=False, opset=0, saturate=True, round_mode='up', out_of_range='auto', int_rounding='trunc', invalid='default', fnuz_inf='spec', float_string='plain', threads=0, scale=1.0)
--

Converts every element of ``x`` to the type ``to`` with one rounding.

Args:
    x: a NumPy array (ml_dtypes types included) of any shape, strides and byte order; a tensor with ``__dlpack__`` in
        host memory (PyTorch, JAX); an object with the buffer protocol; or an array of strings (``U``,
        ``StringDType``, objects); a Series of pandas or polars, a tensor of OpenVINO, an ONNX ``TensorProto``. Or a
        mapping of names to arrays and tensors, such as a PyTorch ``state_dict``: its floating-point tensors become
        ``to``, tied tensors stay tied, and what is no tensor stays as it is. It may have mappings, lists and tuples
        inside; ``"optimizer.0.exp_avg"`` is then the name of ``x["optimizer"][0]["exp_avg"]``.
    to: a name such as ``"float8_e4m3fn"``, a NumPy, ml_dtypes or torch type, or an ONNX number. A NumPy type of the
        other byte order, such as ``">f4"``, gives an array of it. ``None``, of a mapping: only ``rules`` name types.
    out: an array of the result's shape and type to write into. It must not overlap ``x``, unless it is the same
        memory with elements that are not wider.
    copy: ``False`` returns ``x`` itself where nothing changes.
    order: of a new array: ``"C"``, ``"K"`` for the memory layout of ``x``, or ``None``: C for arrays, and for PyTorch
        the memory format of the tensor, as ``Tensor.to`` does.
    packed: types under 8 bits as ``uint8`` bytes, low bits first, instead of ml_dtypes' one element per byte.
    from_: with ``packed=True``, the type of the codes in a ``uint8`` array.
    shape: with ``from_``, the shape of the elements, as ``(4096, 4096)``; ``scale`` may then be an array.
    report: ``True`` returns ``(result, CastReport)``: what the conversion did to the numbers.
    rules: of a mapping: ``{regular expression: dtype}``, or a list of :class:`Rule`, as in :func:`convert`.
    include: of a mapping: regular expressions (RE2) of the names to convert; a string is one.
    exclude: of a mapping: regular expressions of names to leave alone.
    keep_rank: of a mapping: leave tensors with this number of dimensions, or one of these.
    keep_smaller: of a mapping: leave tensors with fewer elements.
    preset: of a mapping: ``"weights-only"`` leaves all but the matrices of layers.
    raw_codes: of a mapping: convert weights of 8 bits although a tensor beside them has their scales.
    opset: version of ONNX ``Cast`` whose rules apply, 1 to 28; default the newest.
    saturate: float8 targets: clamp (default), or let overflow become NaN or infinity.
    round_mode: ``"up"`` (default), ``"down"``, ``"nearest"``; float8_e8m0fnu only.
    out_of_range: a number that the target lacks: ``"saturate"`` makes it the lowest or largest, ``"error"`` refuses it;
        ``"auto"`` (default) and ``"wrap"`` are ONNX's rules: integers wrap, floats become infinity or as ``saturate`` says.
    int_rounding: integer targets: ``"trunc"`` (default), ``"nearest_even"``.
    invalid: ``"default"``, or ``"error"`` for NaN and infinities that the target cannot express.
    fnuz_inf: ``"spec"`` (default) or ``"flt_max"``; opset 19 to 23.
    float_string: ``"plain"`` (default), ``"shortest"``, ``"g8"``; string targets.
    threads: 0 (default) for all cores. Results do not depend on it.
    scale: values are multiplied by it before the one rounding; default 1. An array that broadcasts to the shape of
        ``x`` has a scale for each row, channel or element.

Returns:
    The same kind of array as ``x``, shape kept; of a mapping a dictionary, with ``report`` and one of reports. A PyTorch tensor that requires a gradient gives one that passes it
    straight through: ``scale`` times the gradient, in the type of ``x``.

Raises:
    CastError: an argument that is wrong in itself. Its subclasses: UnsupportedError, a type or option that the opset
        lacks; OutOfRangeError, an element that the options do not allow; ParseError, a text that is not a number.
        ``.index`` names the element.
    TypeError: an ``x`` or ``to`` that no cast knows, with advice.

Source: ONNX operator ``Cast``, versions 1 to 28; ``docs/semantics.md``.)";

}  // namespace tensorcast::python
