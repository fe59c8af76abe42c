// SPDX-License-Identifier: Apache-2.0
// Exact decimals as text, and the ways in which people write numbers.

// {digits: BigInt, places}: digits * 10^-places; null for infinities and NaN.
export function parseDecimal(text) {
  const found = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text);
  if (!found || (!found[2] && !found[3])) return null;
  const fraction = found[3] ?? "";
  let places = fraction.length - Number(found[4] ?? 0);
  let digits = BigInt(found[2] + fraction);
  if (places < 0) {
    digits *= 10n ** BigInt(-places);
    places = 0;
  }
  return { digits: found[1] === "-" ? -digits : digits, places };
}

function decimalText({ digits, places }) {
  const negative = digits < 0n;
  let text = (negative ? -digits : digits).toString().padStart(places + 1, "0");
  if (places > 0) text = `${text.slice(0, -places)}.${text.slice(-places)}`.replace(/\.?0+$/, "");
  return negative ? `-${text}` : text;
}

// The exact difference of two decimals; "" if one is not finite.
export function difference(a, b) {
  const [x, y] = [parseDecimal(a), parseDecimal(b)];
  if (!x || !y) return "";
  const places = Math.max(x.places, y.places);
  const scaled = ({ digits, places: own }) => digits * 10n ** BigInt(places - own);
  return decimalText({ digits: scaled(x) - scaled(y), places });
}

// At most about `longest` characters: the first digits, "…" if any were left out, and the exponent if there are many zeros.
export function shortened(text, longest = 28) {
  if (text.length <= longest) return text;
  const decimal = parseDecimal(text);
  if (!decimal) return text;
  const digits = (decimal.digits < 0n ? -decimal.digits : decimal.digits).toString();
  const exponent = digits.length - 1 - decimal.places;
  const sign = decimal.digits < 0n ? "-" : "";
  if (exponent >= -4 && exponent < longest - 8) return `${text.slice(0, longest - 1)}…`;
  const kept = digits.slice(0, longest - 10);
  const rest = digits.slice(longest - 10);
  const mark = /[1-9]/.test(rest) ? "…" : "";
  const plain = kept.replace(/0+$/, "") || "0";
  const mantissa = (mark ? kept : plain).replace(/^(\d)(\d+)/, "$1.$2");
  return `${sign}${mantissa}${mark}e${exponent}`;
}

// "2^-9" for powers of two, else the shortened decimal.
export function powerOfTwo(value) {
  const power = Math.log2(Math.abs(value));
  return Number.isInteger(power) && Math.abs(power) > 3 && 2 ** power === Math.abs(value)
    ? `${value < 0 ? "-" : ""}2^${power}` : null;
}

// Digits enough that no midpoint of a type lies between the quotient and its digits: float64's have 767.
const quotient_digits = 800;

function quotientText(numerator, denominator) {
  const negative = numerator < 0n !== denominator < 0n;
  const [n, d] = [numerator < 0n ? -numerator : numerator, denominator < 0n ? -denominator : denominator];
  const places = Math.max(0, quotient_digits - n.toString().length + d.toString().length);
  const scale = 10n ** BigInt(places);
  let digits = n * scale / d;
  const inexact = n * scale % d !== 0n;
  const text = decimalText({ digits, places });
  const tail = inexact ? `${text.includes(".") ? "" : "."}${"0".repeat(places - (text.split(".")[1] ?? "").length)}1` : "";
  return (negative ? "-" : "") + text + tail;
}

// What a person typed: {literal} for the engine; {literal, isCode} for a code; {error}.
export function readLiteral(typed) {
  const text = typed.trim().replaceAll("−", "-").replace(/(\d)[_ ](?=\d)/g, "$1");
  if (/^0x[0-9a-f]+$/i.test(text) || /^0b[01]+$/i.test(text)) return { literal: text, isCode: true };
  const fraction = /^([+-]?\d+)\s*\/\s*([+-]?\d+)$/.exec(text);
  if (fraction) {
    const denominator = BigInt(fraction[2]);
    if (denominator === 0n) return { error: "a fraction divides by a number other than 0" };
    if (text.length > 600) return { error: "the fraction has too many digits" };
    return { literal: quotientText(BigInt(fraction[1]), denominator), isFraction: true };
  }
  const power = /^([+-]?)2\s*(?:\^|\*\*)\s*([+-]?\d{1,4})$/.exec(text);
  if (power) return { literal: power[1] + binaryText(1n, Number(power[2])) };
  const hex = /^([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?\d{1,4})$/i.exec(text);
  if (hex && (hex[2] || hex[3])) {
    const digits = (hex[2] ?? "") + (hex[3] ?? "");
    return { literal: hex[1] + binaryText(BigInt(`0x${digits}`), Number(hex[4]) - 4 * (hex[3] ?? "").length) };
  }
  return { literal: text };
}

// significand * 2^exponent
function binaryText(significand, exponent) {
  if (exponent >= 0) return (significand << BigInt(exponent)).toString();
  return decimalText({ digits: significand * 5n ** BigInt(-exponent), places: -exponent });
}
