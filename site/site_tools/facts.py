# SPDX-License-Identifier: Apache-2.0
"""The generated parts of the pages on types: layout, range, codes, casts, spellings, files."""

from __future__ import annotations

import fractions
from typing import Any

from site_tools import engine

FORMATS_OF_FILES = engine.FILES
LONGEST = 24  # digits of a number in a table; longer ones are powers of two


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def power_of_two(value: fractions.Fraction) -> str | None:
    """2^n, m x 2^n with an odd m, or None if the number has other factors."""
    magnitude = abs(value)
    if magnitude == 0 or magnitude.denominator & (magnitude.denominator - 1):
        return None
    exponent = -(magnitude.denominator.bit_length() - 1)
    odd = magnitude.numerator
    shift = (odd & -odd).bit_length() - 1
    odd, exponent = odd >> shift, exponent + shift
    sign = "-" if value < 0 else ""
    if odd == 1:
        return f"{sign}2<sup>{exponent}</sup>"
    return f"{sign}{odd} × 2<sup>{exponent}</sup>"


def number(exact: str) -> str:
    """An exact decimal; a long one as a product with a power of two."""
    if exact.endswith("INF"):
        return exact.replace("INF", "∞")
    if len(exact) <= LONGEST:
        return exact
    product = power_of_two(fractions.Fraction(exact))
    return f"{product} ≈ {float(fractions.Fraction(exact)):.6g}" if product else exact


def is_float(dtype: str) -> bool:
    return bool(engine.types()[dtype]["family"] == "float")


def bits_of(result: dict[str, Any]) -> str:
    return " ".join(filter(None, (result["sign_bits"], result["exponent_bits"], result["mantissa_bits"])))


def layout(dtype: str) -> str:
    """One cell for each bit, the highest first; long fields are shortened."""
    row = engine.types()[dtype]
    if row["family"] == "text":
        return "A sequence of bytes of any length.\n"
    if row["family"] != "float":
        first = "sign" if dtype.startswith("int") else "mantissa"
        names = [first] + ["mantissa"] * (row["bits"] - 1)
        label = {"bool": "0 is false, any other byte true"}.get(dtype, "two's complement" if first == "sign" else "binary")
    else:
        exponent, mantissa = row["exponent_bits"], row["mantissa_bits"]
        sign = row["bits"] - exponent - mantissa
        names = ["sign"] * sign + ["exponent"] * exponent + ["mantissa"] * mantissa
        fields = [f"{count} {name}" for count, name in ((sign, "sign"), (exponent, "exponent"), (mantissa, "mantissa"))]
        label = " + ".join(field for field in fields if not field.startswith("0 ")) + f", bias {row['bias']}"
    cells = "".join(f'<td class="{name}">{name[0]}</td>' for name in names)
    if row["bits"] > 16:
        runs = [(name, names.count(name)) for name in dict.fromkeys(names)]
        cells = "".join(f'<td class="{name}">{name} {count}</td>' for name, count in runs)
    return f'<table class="bits"><tr>{cells}</tr></table>\n\n{row["bits"]} bits, highest first: {label}.\n'


def formula(dtype: str) -> str:
    row = engine.types()[dtype]
    if row["mantissa_bits"] == 0:
        return f"`2^(code - {row['bias']})`; the exponent is the whole code."
    low, width = 1 - row["bias"], row["mantissa_bits"]
    sign = "(-1)^sign × " if row["lowest"] < 0 else ""
    return (
        f"`{sign}2^(exponent - {row['bias']}) × (1 + mantissa / {2**width})`; with exponent 0, "
        f"`{sign}2^({low}) × mantissa / {2**width}`."
    )


def facts(dtype: str) -> str:
    """The numbers that people look up."""
    row = engine.types()[dtype]
    rows: list[list[str]] = []
    if is_float(dtype):
        looked_up = [repr(row["largest"]), repr(row["lowest"]), repr(row["smallest_positive"])]
        ends = engine.explain(looked_up, dtype, "--round-mode", "nearest")
        rows += [["value", formula(dtype)]]
        rows += [[name, number(end["exact_value"])] for name, end in zip(("largest", "lowest", "smallest above zero"), ends)]
        if row["mantissa_bits"]:
            normal = engine.decode([1 << row["mantissa_bits"]], dtype)[0]
            rows.append(["smallest normal", number(normal["exact_value"])])
        rows.append(["gap after 1", number(str(fractions.Fraction(1, 2 ** row["mantissa_bits"])))])
        digits = row["mantissa_bits"] + 1
        rows.append(["precision", f"{digits} binary digits; a normal number rounds with a relative error of at most 2<sup>-{digits}</sup>"])
        if not row["mantissa_bits"]:
            rows = rows[:-2]
        zeros = "none" if "no zero" in row["special_codes"] else "one, without a sign" if "no -0" in row["special_codes"] or row["lowest"] == 0 else "+0 and -0"
        rows.append(["infinity", "yes" if row["has_infinity"] else "none"])
        rows.append(["NaN", "yes" if row["has_nan"] else "none"])
        rows.append(["zero", zeros])
    elif row["family"] != "text":
        rows += [["lowest", f"{int(row['lowest'])}"], ["largest", f"{int(row['largest'])}"]]
    bits = row["bits"]
    if bits:
        size = f"{bits // 8} bytes" if bits > 8 else "1 byte" if bits == 8 else f"{bits} bits, packed, the first element in the low bits"
        rows.append(["an element takes", size])
    if row["since_opset"]:
        rows.append(["number in ONNX", f"{row['onnx_number']}, Cast since opset {row['since_opset']}"])
    else:
        rows.append(["number", f"{row['number']}, our own, as ONNX lacks the type"])
    return table(["", f"`{dtype}`"], rows)


def special_codes(dtype: str) -> str:
    """Zero, the ends of the subnormal and normal numbers, infinity, NaN: code, bits, exact value."""
    row = engine.types()[dtype]
    if not is_float(dtype):
        values = sorted({int(row["lowest"]), *((-1,) if row["lowest"] < 0 else ()), 0, 1, int(row["largest"])})
        results = engine.explain([str(value) for value in values], dtype)
        rows = [[str(value), f"`{result['code']}`"] for value, result in zip(values, results)]
        return table(["value", "code"], rows)
    mantissa = row["mantissa_bits"]
    largest = int(engine.explain([repr(row["largest"])], dtype)[0]["code"], 16)
    named: list[tuple[str, int]] = []
    if mantissa:
        named = [("zero", 0), ("smallest subnormal", 1), ("largest subnormal", (1 << mantissa) - 1)]
        if mantissa == 1:
            named = [("zero", 0), ("the only subnormal", 1)]
        named.append(("smallest normal", 1 << mantissa))
    else:
        named = [("smallest", 0)]
    named += [("one", row["bias"] << mantissa), ("largest", largest)]
    if row["has_infinity"]:
        named.append(("infinity", int(engine.explain(["inf"], dtype, "--saturate", "false")[0]["code"], 16)))
    if row["has_nan"]:
        named.append(("NaN", int(engine.explain(["nan"], dtype)[0]["code"], 16)))
    if row["lowest"] < 0 and "no -0" not in row["special_codes"]:
        named.append(("-0", 1 << (row["bits"] - 1)))
    decoded = engine.decode([code for _, code in named], dtype)
    rows = [[name, f"`{d['code']}`", f"`{bits_of(d)}`", number(d["exact_value"])] for (name, _), d in zip(named, decoded)]
    rule = f"\nSpecial codes: {row['special_codes']}.\n" if row["special_codes"] else ""
    return table(["", "code", "bits", "value"], rows) + rule


def all_codes(dtype: str) -> str:
    """The value of every code, for types of 8 bits or fewer: rows are the high bits, columns the low ones."""
    bits = engine.types()[dtype]["bits"]
    columns = 2 ** min(bits, 4 if bits == 8 else 3)
    values = [_short(d["shortest_value"].removesuffix(".0")) for d in engine.decode(range(2**bits), dtype)]
    digits = 2 if bits > 4 else 1
    head = "<tr><th></th>" + "".join(f"<th>+{column:X}</th>" for column in range(columns)) + "</tr>"
    body = "".join(
        f"<tr><th>0x{start:0{digits}X}</th>" + "".join(f"<td>{value}</td>" for value in values[start : start + columns]) + "</tr>"
        for start in range(0, 2**bits, columns)
    )
    return f'<table class="codes"><thead>{head}</thead><tbody>{body}</tbody></table>\n'


def _short(text: str) -> str:
    return text if len(text) <= 9 else f"{float(text):.4g}"


def _shown(result: dict[str, Any]) -> str:
    return number(result["exact_value"])


def samples(dtype: str) -> list[str]:
    """Sources that show what the type does: exact, rounded, at its ends, beyond, infinite, not a number."""
    row = engine.types()[dtype]
    if row["family"] == "text":
        return ["0.1", "-0.0", "1e-7", "1e20", "inf", "nan"]
    if row["family"] == "bool":
        return ["0", "-0.0", "0.5", "1", "-3", "nan"]
    if row["family"] == "integer":
        ends = [str(int(row["largest"])), str(int(row["largest"]) + 1), str(int(row["lowest"]) - 1)]
        return ["0.5", "1.5", "-1.5", *ends, "1e30", "inf", "nan"]
    largest = fractions.Fraction(row["largest"])
    last = int(engine.explain([repr(row["largest"])], dtype)[0]["code"], 16)
    before = fractions.Fraction(engine.decode([last - 1], dtype)[0]["exact_value"])
    midpoint = largest + (largest - before) / 2
    ends = [repr(float(largest))]
    if row["bits"] < 64:
        ends += [repr(float(midpoint)), repr(float(midpoint + (largest - before) / 32)), repr(float(largest * 4))]
    small = repr(row["smallest_positive"] / 2) if row["bits"] < 64 else "1e-400"
    return ["0.1", "1", "-0.0", "-1", small, *ends, "inf", "-inf", "nan"]


def casts(dtype: str) -> str:
    """What casts from float64 give, with the options that change the result."""
    row = engine.types()[dtype]
    columns: list[tuple[str, list[str]]] = [("default", [])]
    if row["family"] == "integer":
        columns += [("`out_of_range=saturate`", ["--out-of-range", "saturate"]), ("`rounding=nearest_even`", ["--rounding", "nearest_even"])]
    elif is_float(dtype) and row["bits"] == 8:
        columns += [("`saturate=false`", ["--saturate", "false"])]
        if dtype.endswith("fnuz") and row["since_opset"]:
            columns += [("opset 19", ["--opset", "19"])]
        if row["mantissa_bits"] == 0:
            columns += [("`round_mode=nearest`", ["--round-mode", "nearest"]), ("`round_mode=down`", ["--round-mode", "down"])]
    elif dtype == "float4_e2m1fn":
        columns += [("opset 23", ["--opset", "23"])]
    values = samples(dtype)
    results = [engine.explain(values, dtype, "--from", "float64", *options) for _, options in columns]
    rows = [[f"`{value}`", *(_shown(column[i]) for column in results)] for i, value in enumerate(values)]
    return table(["from float64", *(name for name, _ in columns)], rows)


def files(dtype: str) -> str:
    held = engine.files_that_hold(dtype)
    named = [f"{FORMATS_OF_FILES[ending]} (`{ending}`)" for ending in held]
    torch = [s for s in engine.types()[dtype]["spellings"] if s.startswith("torch.")]
    text = "tensorcast writes it to: " + ", ".join(named) + "."
    missing = [f"`{ending}`" for ending in FORMATS_OF_FILES if ending not in held]
    text += f" Not to: {', '.join(missing)}." if missing else ""
    text += f" PyTorch's name is `{torch[0]}`." if torch else " PyTorch has no such type."
    return text + "\n"


def spellings(dtype: str) -> str:
    words = [f"`{word}`".replace("|", "\\|") for word in engine.types()[dtype]["spellings"]]
    return "tensorcast reads these names: " + ", ".join(words) + ".\n"


def same_casts(first: str, second: str) -> str:
    """One source, two targets."""
    values = list(dict.fromkeys(samples(first) + samples(second)))
    values.sort(key=lambda text: (text in ("inf", "-inf", "nan"), float(text)))
    rows = [[f"`{v}`", _shown(a), _shown(b)] for v, a, b in zip(values, engine.explain(values, first), engine.explain(values, second))]
    return table(["source", f"`{first}`", f"`{second}`"], rows)


def compared(first: str, second: str) -> str:
    """Two types side by side."""
    parts = [dict(_rows(facts(dtype))) for dtype in (first, second)]
    rows = [[name, parts[0][name], parts[1].get(name, "")] for name in parts[0]]
    return table(["", f"`{first}`", f"`{second}`"], rows)


def _rows(text: str) -> list[tuple[str, str]]:
    cells = [line.strip("| ").split(" | ", 1) for line in text.splitlines()[2:]]
    return [(name, value) for name, value in cells]


def whole_page(dtype: str) -> str:
    """All generated parts of a type's page, in the order in which people look for them."""
    row = engine.types()[dtype]
    parts = ["## Bits and range", layout(dtype), facts(dtype)]
    if row["family"] != "text":
        parts += ["## Special codes" if is_float(dtype) else "## Codes", special_codes(dtype)]
    if row["bits"] and row["bits"] <= 8 and row["family"] == "float":
        title = f'??? note "All {2 ** row["bits"]} codes"'
        parts.append(title + "\n\n    " + all_codes(dtype))
    parts += ["## Casts to it", casts(dtype), f"More: `tcast explain 0.1 --to {dtype}`, and [the rules](../semantics.md).\n"]
    parts += ["## Files and names", files(dtype), spellings(dtype)]
    return "\n\n".join(parts)
