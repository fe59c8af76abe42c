// SPDX-License-Identifier: Apache-2.0
// Codes of a type: their order by value, and packed elements.

export const mask = type => (1n << BigInt(type.bits)) - 1n;
export const hex = (type, code) => `0x${code.toString(16).toUpperCase().padStart(Math.ceil(type.bits / 4), "0")}`;
export const isSigned = type => type.family === "float"
  ? type.bits > type.exponent_bits + type.mantissa_bits : type.family === "integer" && type.name.startsWith("int");

// The place of a code among all, by value: both zeros are 0.
export function rankOf(type, code) {
  const sign = 1n << BigInt(type.bits - 1);
  if (!isSigned(type) || (code & sign) === 0n) return code;
  return type.family === "float" ? -(code & ~sign) : code - (sign << 1n);
}

// The code of a place; null outside of the type.
export function codeAt(type, rank) {
  const sign = 1n << BigInt(type.bits - 1);
  const signed = isSigned(type);
  if (rank < 0n && !signed) return null;
  if (type.family === "float" && signed) {
    const magnitude = rank < 0n ? -rank : rank;
    return magnitude >= sign ? null : rank < 0n ? magnitude | sign : magnitude;
  }
  const high = signed ? sign - 1n : mask(type);
  if (rank > high || (signed && rank < -sign)) return null;
  return rank & mask(type);
}

// Codes as packed elements, low bits first.
export function packed(type, codes) {
  const { bits } = type;
  const bytes = new Uint8Array(Math.ceil(codes.length * bits / 8));
  if (bits >= 8) {
    const size = bits / 8;
    const view = new DataView(bytes.buffer);
    codes.forEach((code, i) => {
      if (size === 1) bytes[i] = Number(code);
      else if (size === 2) view.setUint16(2 * i, Number(code), true);
      else if (size === 4) view.setUint32(4 * i, Number(code), true);
      else view.setBigUint64(8 * i, BigInt(code), true);
    });
    return bytes;
  }
  codes.forEach((code, i) => {
    const bit = i * bits;
    const value = Number(code) << bit % 8;
    bytes[bit >> 3] |= value & 255;
    if (value > 255) bytes[(bit >> 3) + 1] |= value >> 8;
  });
  return bytes;
}

// Packed elements as codes.
export function unpacked(type, bytes, count) {
  const { bits } = type;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: count }, (_, i) => {
    if (bits === 8) return bytes[i];
    if (bits === 16) return view.getUint16(2 * i, true);
    if (bits === 32) return view.getUint32(4 * i, true);
    if (bits === 64) return view.getBigUint64(8 * i, true);
    const bit = i * bits;
    const two = bytes[bit >> 3] | (bytes[(bit >> 3) + 1] ?? 0) << 8;
    return two >> bit % 8 & (1 << bits) - 1;
  });
}

// All codes, or at most `most` that are equally far apart by rank.
export function sampledCodes(type, most = 65536) {
  if (type.bits <= 16 && 2 ** type.bits <= most) return Array.from({ length: 2 ** type.bits }, (_, i) => i);
  const sign = 1n << BigInt(type.bits - 1);
  const [low, high] = isSigned(type) ? [type.family === "float" ? 1n - sign : -sign, sign - 1n] : [0n, mask(type)];
  const steps = BigInt(most - 1);
  return Array.from({ length: most }, (_, i) => codeAt(type, low + (high - low) * BigInt(i) / steps));
}

// The float64 of codes; exact but for integers of 64 bits.
export function valuesOf(engine, type, codes) {
  const bytes = engine.cast(packed(type, codes), type.name, "float64", codes.length);
  return new Float64Array(bytes.buffer, bytes.byteOffset, codes.length);
}
