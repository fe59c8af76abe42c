# SPDX-License-Identifier: Apache-2.0
"""What the functions of the package return: frozen dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import html
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._core import CastReport

if TYPE_CHECKING:
    from typing_extensions import Self


def _plain(value: Any) -> Any:
    """A value as JSON has it; numbers that are not finite are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, CastReport):
        return _plain(value.as_dict())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.as_dict() if isinstance(value, Result) else value


_WIDTH = 110  # of a line of a repr
_ROWS = 5  # of a table in a repr
_HTML_ROWS = 50


def cut(text: str, width: int = _WIDTH) -> str:
    """The text, or as much of it as fits."""
    return text if len(text) <= width else text[: width - 3] + "..."


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table for notebooks; of many rows the first ones."""
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cut(str(cell)))}</td>" for cell in row) + "</tr>" for row in rows[:_HTML_ROWS]
    )
    more = f"<p>{len(rows) - _HTML_ROWS:,} more</p>" if len(rows) > _HTML_ROWS else ""
    return f"<table><caption>{html.escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{more}"


def _short(value: Any) -> str:
    """The repr of a field on one line, without walking through all of a long one."""
    if isinstance(value, Result):
        return f"{type(value).__name__}({', '.join(f'{name}={_short(item)}' for name, item in value._fields())})"
    if isinstance(value, CastReport):
        return f"<CastReport: {value.count:,} elements, {value.snr_db:.1f} dB>"
    if isinstance(value, Mapping):
        shown = ", ".join(f"{_short(key)}: {_short(item)}" for key, item in itertools.islice(value.items(), _ROWS))
        return "{" + shown + (f", ... {len(value) - _ROWS:,} more" if len(value) > _ROWS else "") + "}"
    if isinstance(value, tuple):
        shown = ", ".join(_short(item) for item in value[:_ROWS])
        more = f", ... {len(value) - _ROWS:,} more" if len(value) > _ROWS else "," if len(value) == 1 else ""
        return f"({shown}{more})"
    if isinstance(value, (bytes, str)):
        return cut(repr(value[: 2 * _WIDTH]), _WIDTH)
    return repr(value) if isinstance(value, (int, float, type(None))) else f"<{type(value).__name__}>"


def _is_table(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Result)


_KINDS: dict[str, type[Result]] = {}


@functools.cache
def _nested(kind: Any) -> dict[str, type[Result]]:
    """The fields of a result that are results themselves, or tables of them."""
    return {
        field.name: _KINDS[word]
        for field in dataclasses.fields(kind)
        for word in re.findall(r"\w+", str(field.type))
        if word in _KINDS
    }


class Result:
    """What all results can do."""

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls

    @classmethod
    def _of(cls, row: Mapping[str, Any], **more: Any) -> Self:
        """What the library says, in dictionaries and lists, and ``more``, as a result."""
        fields = {**row, **more}
        for name, kind in _nested(cls).items():  # type: ignore[arg-type]
            value = fields.get(name)
            if isinstance(value, Mapping):
                fields[name] = kind._of(value)
            elif value is not None:
                fields[name] = tuple(each if isinstance(each, Result) else kind._of(each) for each in value)
        return cls(**fields)

    def _fields(self) -> list[tuple[str, Any]]:
        """The fields that say something: a default says nothing."""
        rows = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
            if field.repr and (value is not default and not (type(value) is type(default) and value == default)):
                rows.append((field.name, value))
        return rows

    def __repr__(self) -> str:
        """On one line if it fits, or else a line for each field, with the first rows of tables."""
        fields = self._fields()
        if sum(len(value) for _, value in fields if _is_table(value)) <= 1 and len(line := _short(self)) <= _WIDTH:
            return line
        lines = [f"{type(self).__name__}("]
        for name, value in fields:
            if not _is_table(value):
                lines.append(cut(f"  {name}={_short(value)},"))
                continue
            lines.append(f"  {name}=(  # {len(value):,}")
            lines += [cut(f"    {_short(row)},") for row in value[:_ROWS]]
            lines.append(f"    ... {len(value) - _ROWS:,} more\n  )," if len(value) > _ROWS else "  ),")
        return "\n".join([*lines, ")"])

    def _repr_html_(self) -> str:
        fields = self._fields()
        plain = [(name, _short(value)) for name, value in fields if not _is_table(value)]
        parts = [html_table(type(self).__name__, ["", ""], plain)]
        for name, table in fields:
            if _is_table(table):
                columns = [field.name for field in dataclasses.fields(table[0])]
                cells = [[_short(getattr(row, column)).strip("'\"") for column in columns] for row in table[:_HTML_ROWS]]
                cells += [[]] * (len(table) - len(cells))
                parts.append(html_table(f"{name}: {len(table):,}", columns, cells))
        return "".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON has them: lists for tuples, ``None`` for infinity and NaN, ``"from"`` for ``from_``.

        Examples:
            >>> tc.inspect("model").shards[0].as_dict()
            {'name': 'model-00001-of-00002.safetensors', 'bytes': 65624, 'tensors': 1, 'metadata': {}}
        """
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name.rstrip("_"): _plain(getattr(self, field.name)) for field in fields}

    def to_json(self, *, indent: int | None = None) -> str:
        """:meth:`as_dict` as a JSON text.

        Examples:
            >>> tc.inspect("model").shards[1].to_json()
            '{"name": "model-00002-of-00002.safetensors", "bytes": 66736, "tensors": 2, "metadata": {}}'
        """
        return json.dumps(self.as_dict(), indent=indent, ensure_ascii=False)


@dataclasses.dataclass(frozen=True, repr=False)
class DTypeInfo(Result):
    """A type, as :func:`tensorcast.dtypes` lists them.

    Examples:
        >>> next(row.largest for row in tc.dtypes() if row.name == "float8_e4m3fn")
        448.0
    """

    __module__ = "tensorcast"

    name: str
    number: int  # ONNX's; from 1002 on our own, of types that ONNX lacks
    onnx: int  # its number in TensorProto.DataType; 0: ONNX lacks it
    bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    has_infinity: bool
    has_nan: bool
    lowest: float
    largest: float
    smallest_positive: float
    since_opset: int  # of Cast; 0: ONNX lacks the type
    special_codes: str
    spellings: tuple[str, ...]  # which the functions of this package take in any case


@dataclasses.dataclass(frozen=True, repr=False)
class SchemeFit(Result):
    """What a tensor would be after quantization to a scheme and decoding to float32.

    Examples:
        >>> info = tc.inspect("model.safetensors", stats=True, candidates=["nvfp4", "mxfp4"])
        >>> [(fit.scheme, fit.bits, round(fit.snr_db)) for fit in info.tensors[1].stats.schemes]
        [('nvfp4', 4.501953125, 21), ('mxfp4', 4.25, 19)]
    """

    __module__ = "tensorcast"

    scheme: str
    recipe: str
    snr_db: float  # signal to noise; infinity without noise
    bits: float  # of an element, scales and zero points included
    signal_power: float  # sum of squares of the elements
    noise_power: float  # sum of squares of the errors
    max_abs_error: float
    became_zero: int  # elements that were not zero
    saturated: int  # elements that became the largest code of their block, and are larger; not of GGUF
    scales: int  # of blocks
    lowest_scales: int  # at the lower limit of their type, of blocks that are not zero
    highest_scales: int
    problem: str = ""  # why it cannot be quantized so; the numbers are then 0


@dataclasses.dataclass(frozen=True, repr=False)
class TensorStats(Result):
    """The numbers of a tensor, and how it would fare as other types.

    Examples:
        >>> stats = tc.inspect("model.safetensors", stats=True).tensors[1].stats
        >>> {dtype: round(report.snr_db) for dtype, report in stats.candidates.items()}
        {'float16': 74, 'bfloat16': 56, 'float8_e4m3fn': 30, 'float8_e5m2': 26}
    """

    __module__ = "tensorcast"

    count: int
    nan: int
    infinite: int
    zero: int
    negative: int
    min: float  # of the finite elements, as the next two
    max: float
    smallest_nonzero_magnitude: float
    candidates: Mapping[str, CastReport] = dataclasses.field(default_factory=dict)  # by type
    schemes: tuple[SchemeFit, ...] = ()  # of floating-point tensors, in the order of ``candidates=``


@dataclasses.dataclass(frozen=True, repr=False)
class TensorInfo(Result):
    """A tensor in a file.

    Examples:
        >>> [(tensor.name, tensor.dtype, tensor.shape) for tensor in tc.inspect("model.safetensors").tensors]
        [('embed.weight', 'float32', (64, 256)), ('layers.0.mlp.up_proj.weight', 'float32', (64, 256)), ('norm.weight', 'float32', (256,))]
    """

    __module__ = "tensorcast"

    name: str
    dtype: str  # "undefined" for a type that is not one of ours
    shape: tuple[int, ...]  # in elements
    bytes: int
    foreign_dtype: str = ""  # the file's name of a type that is not one of ours
    problem: str = ""  # why the elements cannot be read
    stats: TensorStats | None = None  # with stats=True; None for tensors without numbers


@dataclasses.dataclass(frozen=True, repr=False)
class LayerInfo(Result):
    """A quantized weight that :func:`tensorcast.inspect` finds: codes, scales and what else belongs to them.

    Examples:
        >>> [(layer.name, layer.spelling, layer.scheme) for layer in tc.inspect("quantized.safetensors").layers]
        [('layers.0.mlp.up_proj.weight', 'modelopt', 'nvfp4')]
    """

    __module__ = "tensorcast"

    name: str  # of the weight that they decode to
    spelling: str  # who names and packs tensors so, such as "compressed-tensors"
    scheme: str  # such as "nvfp4"
    shape: tuple[int, ...]  # of the weight
    block: tuple[int, int]  # rows and columns that share a scale; 0: all
    tensors: tuple[str, ...] = ()  # the codes are first
    problem: str = ""  # why it is not decoded: a contradiction, or a method that is known and not decoded
    problem_tensor: str = ""  # the tensor that `problem` is about


@dataclasses.dataclass(frozen=True, repr=False)
class FileInfo(Result):
    """What :func:`tensorcast.inspect` finds in a file.

    Examples:
        >>> info = tc.inspect("model.safetensors")
        >>> info.format, sum(tensor.bytes for tensor in info.tensors)
        ('safetensors', 132096)
    """

    __module__ = "tensorcast"

    format: str  # "checkpoint" for a folder or an index
    tensors: tuple[TensorInfo, ...]  # in the file's order
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    layers: tuple[LayerInfo, ...] = ()  # quantized weights
    warnings: tuple[str, ...] = ()  # of their scales, and of methods that are not decoded
    notes: tuple[str, ...] = ()  # of layers: negative scales, recipes that codes and scales exclude

    @property
    def layer_kinds(self) -> dict[tuple[str, str, tuple[int, int]], int]:
        """How many layers have each spelling, scheme and block; more than one key: the model is mixed.

        Examples:
            >>> tc.inspect("quantized.safetensors").layer_kinds
            {('modelopt', 'nvfp4', (1, 16)): 1}
        """
        kinds: dict[tuple[str, str, tuple[int, int]], int] = {}
        for layer in self.layers:
            kind = (layer.spelling, layer.scheme, layer.block)
            kinds[kind] = kinds.get(kind, 0) + 1
        return kinds


@dataclasses.dataclass(frozen=True, repr=False)
class CheckpointTensor(TensorInfo):
    """A tensor of a checkpoint's folder.

    Examples:
        >>> {tensor.name: tensor.kind for tensor in tc.inspect("model").tensors}
        {'embed.weight': 'embedding', 'layers.0.mlp.up_proj.weight': 'feed-forward', 'norm.weight': 'norm'}
    """

    __module__ = "tensorcast"

    file: str = ""  # relative to the folder
    full_name: str = ""  # with the folder and variant of its model, such as "unet/fp16:conv_in.weight"
    kind: str = ""  # what it is by its name: "embedding", "attention", "feed-forward", "norm", "head" ... "other"


@dataclasses.dataclass(frozen=True, repr=False)
class CheckpointFile(Result):
    """A file of a checkpoint's folder.

    Examples:
        >>> [(file.name, file.tensors) for file in tc.inspect("model").shards]
        [('model-00001-of-00002.safetensors', 1), ('model-00002-of-00002.safetensors', 2)]
    """

    __module__ = "tensorcast"

    name: str  # relative to the folder
    bytes: int
    tensors: int  # 0 for files that are not safetensors
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, repr=False)
class CheckpointInfo(FileInfo):
    """What :func:`tensorcast.inspect` finds in a folder or through an index; ``metadata`` is that of all shards.

    Examples:
        >>> info = tc.inspect("model")
        >>> len(info.shards), info.indexes
        (2, ('model.safetensors.index.json',))
    """

    __module__ = "tensorcast"

    tensors: tuple[CheckpointTensor, ...] = ()  # shard by shard, in file order
    shards: tuple[CheckpointFile, ...] = ()
    other_files: tuple[CheckpointFile, ...] = ()
    indexes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, repr=False)
class ConvertedTensor(Result):
    """A tensor that :func:`tensorcast.convert` wrote or, with ``dry_run=True``, would write.

    Examples:
        >>> plan = tc.convert("model.safetensors", "half.safetensors", "float16", preset="weights-only", dry_run=True)
        >>> [(row.name, row.to, row.reason) for row in plan.tensors]
        [('embed.weight', 'float32', 'embedding'), ('layers.0.mlp.up_proj.weight', 'float16', 'to='), ('norm.weight', 'float32', 'not a matrix')]
    """

    __module__ = "tensorcast"

    name: str
    from_: str
    to: str  # equal to from_: copied byte for byte
    shape: tuple[int, ...]  # in elements
    bytes_in: int
    bytes_out: int
    reason: str  # why it has this type: "to=", "rule 2", "excluded", "integer" ...
    left: bool  # a conversion was asked for and not done; `reason` says why
    damage: str  # what destroyed the tensor, or ""
    remedy: str  # with `damage`: what would help
    report: CastReport | None = None  # with report=True
    file: str = ""  # of a checkpoint: the output file with the tensor, relative to the output
    output_name: str = ""  # after rename=; else the same as `name`
    scale: float = 1.0  # what its elements were multiplied by; 1 if it was copied
    becomes: str = ""  # the spelling and scheme that the weight is quantized to, such as "modelopt nvfp4"
    elements: int = 0  # of such a weight, at its codes; 0 at its other tensors
    bits: float = 0.0  # of all its tensors for each element, at its codes
    recipe: str = ""  # at its codes; `report` is that of the conversion to codes and back
    search: str = ""  # what its scales are searched by: "clip mse", "importance"; empty: the recipe's own
    choice: str = ""  # with budget=, at its codes: why it has its scheme
    passes: int = 0  # at its codes: how often its numbers are read: twice, if its whole tensor has a scale
    # The spelling and scheme that were decoded, such as "deepseek fp8-block"; from_ is then "float32". Or, at the codes of
    # a weight that is quantized, its scheme alone: "nvfp4".
    scheme: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
class ConvertedShard(Result):
    """An output file with tensors of a checkpoint.

    Examples:
        >>> done = tc.convert("model", "model-bf16", "bfloat16")
        >>> [(shard.tensors, shard.bytes_in, shard.bytes_out) for shard in done.shards]
        [(1, 65536, 32856), (2, 66560, 33456)]
    """

    __module__ = "tensorcast"

    file: str  # relative to the output
    bytes_in: int
    bytes_out: int
    tensors: int
    sha256: str  # 64 hexadecimal digits; "" if it is not converted yet
    done_before: bool  # by an earlier run or another process


@dataclasses.dataclass(frozen=True, repr=False)
class Requirements(Result):
    """What the conversion of a checkpoint needs, by ``dry_run=True``.

    Examples:
        >>> plan = tc.convert("model", "model-bf16", "bfloat16", dry_run=True)
        >>> plan.requirements.disk_bytes < plan.requirements.disk_free_bytes
        True
    """

    __module__ = "tensorcast"

    seconds: float  # measured on the first bytes; assumes that the output is as fast
    memory_bytes: int
    disk_bytes: int
    disk_free_bytes: int


@dataclasses.dataclass(frozen=True, repr=False)
class ConvertResult(Result):
    """What :func:`tensorcast.convert` did.

    Examples:
        >>> done = tc.convert("model.safetensors", "half.safetensors", "float16", verify=True)
        >>> done.bytes_read, done.bytes_written, done.verified
        (132352, 66296, True)
    """

    __module__ = "tensorcast"

    input_format: str
    output_format: str
    tensors: tuple[ConvertedTensor, ...]  # of the output, in the input's order
    bytes_read: int
    bytes_written: int
    verified: bool
    other_data: str = ""  # the JSON file beside the output, with what a PyTorch checkpoint has besides tensors
    warnings: tuple[str, ...] = ()  # what the output lacks: objects of a PyTorch checkpoint that are no tensors
    # The rest is of checkpoints only.
    shards: tuple[ConvertedShard, ...] = ()
    copied_files: tuple[str, ...] = ()  # files without tensors
    rewritten_files: tuple[str, ...] = ()  # configs and indexes
    requirements: Requirements | None = None  # with dry_run=True
    resumed: bool = False  # an earlier run had begun the conversion


@dataclasses.dataclass(frozen=True, repr=False)
class VerifyResult(Result):
    """What :func:`tensorcast.checkpoint.verify` has compared.

    Examples:
        >>> done = tc.convert("model", "model-bf16", "bfloat16")
        >>> tc.checkpoint.verify("model-bf16", against="model").tensors
        3
    """

    __module__ = "tensorcast"

    files: int  # whose SHA-256 is right
    tensors: int  # that equal a second conversion of the source
    bytes_read: int
    warnings: tuple[str, ...] = ()  # of scales, as of inspect()
    recipes: tuple[str, ...] = ()  # of quantized weights: "4 weights are nvfp4 by modelopt"


@dataclasses.dataclass(frozen=True, repr=False)
class TensorDifference(Result):
    """A tensor of two checkpoints, as :func:`tensorcast.checkpoint.diff` compares them.

    Examples:
        >>> done = tc.convert("model", "model-bf16", "bfloat16")
        >>> [(row.name, row.to, row.equal) for row in tc.checkpoint.diff("model", "model-bf16")]
        [('embed.weight', 'bfloat16', False), ('layers.0.mlp.up_proj.weight', 'bfloat16', False), ('norm.weight', 'bfloat16', False)]
    """

    __module__ = "tensorcast"

    name: str  # as CheckpointTensor.full_name
    from_: str | None  # None: it is missing, or of a type that no cast knows
    to: str | None
    from_shape: tuple[int, ...]
    to_shape: tuple[int, ...]
    in_a: bool
    in_b: bool
    equal: bool  # type, shape and, unless only headers are compared, every value, NaN with NaN
    compared: bool  # as float64; the fields from count on are then set
    decoded: bool  # of onnx.diff(): as DequantizeLinear decodes the codes of one or both
    undecodable: bool  # of onnx.diff(): codes of one are not compared with what the other has
    count: int
    different: int  # elements
    infinities_made: int  # of the different ones: infinite in b only
    infinities_lost: int  # infinite in a only
    nan_made: int
    nan_lost: int
    max_abs_error: float  # of elements that are finite in both, as the fields below
    max_rel_error: float
    snr_db: float  # infinity: equal; NaN: only infinities and NaN differ


@dataclasses.dataclass(frozen=True, repr=False)
class AddCastResult(Result):
    """What :func:`tensorcast.add_cast` changed in a model.

    Examples:
        >>> tc.add_cast("model.onnx", "new.onnx", "r", "float16").rewired
        1
    """

    __module__ = "tensorcast"

    node_name: str
    output_name: str
    rewired: int  # inputs of nodes that now take the converted value
    graph_output_renamed: bool
