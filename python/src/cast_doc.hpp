// SPDX-License-Identifier: Apache-2.0
// help(tensorcast.cast).
#pragma once

#include <string>

#include "options/cast_options.hpp"
#include "options/option_text.hpp"

namespace tensorcast::python {

// The first line is what inspect.signature() reads; {signature} and {options} stand for those of the list.
inline constexpr const char* cast_doc_frame =
    R"(cast(x, /, to, *, out=None, copy=True, order=None, packed=False, from_=None, shape=None, report=False, rules=(), include=(), exclude=(), keep_rank=(), keep_smaller=0, preset=None, raw_codes=False, {signature})
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
    packed: types under 8 bits as ``uint8`` bytes, low bits first, instead of ml_dtypes' one element per byte; and types
        that ml_dtypes lacks, such as ``"binary8p4se"``, as ``uint8`` codes.
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
{options}    threads: 0 (default) for all cores. Results do not depend on it.

Returns:
    The same kind of array as ``x``, shape kept; of a mapping a dictionary, with ``report`` and one of reports. A PyTorch tensor that requires a gradient gives one that passes it
    straight through: ``scale`` times the gradient, in the type of ``x``.

Raises:
    CastError: an argument that is wrong in itself. Its subclasses: UnsupportedError, a type or option that the opset
        lacks; OutOfRangeError, an element that the options do not allow; ParseError, a text that is not a number.
        ``.index`` names the element.
    TypeError: an ``x`` or ``to`` that no cast knows, with advice.

Examples:
    >>> tc.cast(np.float32([0.1, 448, 1e9]), "float8_e4m3fn")
    array([0.101562, 448, 448], dtype=float8_e4m3fn)
    >>> tc.cast(np.float32([2.7, 300]), "uint8", rounding="nearest_even", out_of_range="saturate")
    array([  3, 255], dtype=uint8)
    >>> half, report = tc.cast(weight, "float16", report=True)
    >>> report.overflowed
    0

Source: ONNX operator ``Cast``, versions 1 to 28; ``docs/semantics.md``.)";

// ", opset=0, saturate=True".
inline std::string options_signature() {
  std::string text;
  options::for_each(options::cast_options, [&](const auto& option) {
    text += std::string(option.name) + "=" + options::python_default(option) + ", ";
  });
  return text + "threads=0";
}

// A line for each option.
inline std::string options_doc() {
  std::string text;
  options::for_each(options::cast_options, [&](const auto& option) {
    text += std::string("    ") + option.name + ": " + options::help_text(option);
    const char* separator = ": ";
    for (const char* word : option.words) {
      text += separator + ("``\"" + std::string(word)) + "\"``";
      separator = ", ";
    }
    text += ".\n";
    if (*option.more != '\0') text += std::string("        ") + option.more + ".\n";
  });
  return text;
}

inline std::string make_cast_doc() {
  std::string doc = cast_doc_frame;
  for (const auto& [mark, text] :
       {std::pair("{signature}", options_signature()), std::pair("{options}", options_doc())}) {
    doc.replace(doc.find(mark), std::char_traits<char>::length(mark), text);
  }
  return doc;
}

}  // namespace tensorcast::python
