// help(tensorcast.cast).
#pragma once

namespace tensorcast::python {

inline constexpr const char* cast_doc = R"(cast(x, dtype, **options)
--

Converts every element of ``x`` to ``dtype`` with one rounding.

Args:
    x: a NumPy array (ml_dtypes types included) of any shape, strides and byte order; a tensor with ``__dlpack__`` in
        host memory (PyTorch, JAX); an object with the buffer protocol; or an array of strings (``U``,
        ``StringDType``, objects).
    dtype: a name such as ``"float8_e4m3fn"``, a NumPy, ml_dtypes or torch type, or an ONNX number.
    out: an array of the result's shape and type to write into. It must not overlap ``x``, unless it is the same
        memory with elements that are not wider.
    copy: ``False`` returns ``x`` itself where nothing changes.
    order: ``"C"`` (the default), or ``"K"`` for the memory layout of ``x``.
    packed: types under 8 bits as ``uint8`` bytes, low bits first, instead of ml_dtypes' one element per byte.
    source: with ``packed=True``, the type of the codes in a ``uint8`` array.
    report: ``True`` returns ``(result, CastReport)``: what the conversion did to the numbers.
    opset: version of ONNX ``Cast`` whose rules apply, 1 to 28; default the newest.
    saturate: float8 targets: clamp (default), or let overflow become NaN or infinity.
    round_mode: ``"up"`` (default), ``"down"``, ``"nearest"``; float8_e8m0fnu only.
    out_of_range: integer targets: ``"auto"`` (default), ``"wrap"``, ``"saturate"``, ``"error"``.
    int_rounding: integer targets: ``"trunc"`` (default), ``"nearest_even"``.
    invalid: ``"default"``, or ``"error"`` for NaN and infinities that the target cannot express.
    fnuz_inf: ``"spec"`` (default) or ``"flt_max"``; opset 19 to 23.
    float_string: ``"plain"`` (default), ``"shortest"``, ``"g8"``; string targets.
    threads: 0 (default) for all cores. Results do not depend on it.
    scale: values are multiplied by it before the one rounding; default 1.

Returns:
    The same kind of array as ``x``, shape kept; C order unless ``order="K"``.

Raises:
    CastError: a value or a type that is refused; ``.index`` names the element.
    TypeError: an ``x`` or ``dtype`` that no cast knows, with advice.

Source: ONNX operator ``Cast``, versions 1 to 28; ``docs/semantics.md``.)";

}  // namespace tensorcast::python
