// SPDX-License-Identifier: Apache-2.0
// ONNX models: the initializers, found in protobuf's messages without a schema of the rest.

import { bytesOf, checkNames, Cursor, fail, product } from "./file_bytes.js";

function varint(cursor) {
  let [value, scale] = [0, 1];
  for (let i = 0; i < 10; ++i) {
    const byte = cursor.u8();
    value += (byte & 127) * scale;
    if (byte < 128) return value;
    scale *= 128;
  }
  return fail("this is no ONNX model");
}

// Calls visit(field, value) for numbers and visit(field, undefined, start, length) for the rest.
function fields(cursor, visit) {
  while (cursor.left > 0) {
    const tag = varint(cursor);
    const [field, wire] = [Math.floor(tag / 8), tag % 8];
    if (wire === 0) visit(field, varint(cursor));
    else if (wire === 1) cursor.skip(8);
    else if (wire === 5) cursor.skip(4);
    else if (wire === 2) {
      const length = varint(cursor);
      const start = cursor.at;
      cursor.skip(length);
      visit(field, undefined, start, length);
    } else fail("this is no ONNX model");
  }
}

// Of the messages ModelProto, GraphProto and TensorProto.
const model = { graph: 7, producer: 2, ir_version: 1 };
const graph = { initializer: 5, name: 2, node: 1 };
const tensor = { dims: 1, data_type: 2, float_data: 4, int32_data: 5, int64_data: 7, name: 8, raw_data: 9, double_data: 10, external_data: 13, location: 14 };

function readTensor(bytes, blob, start, numbers) {
  const found = { shape: [], blob };
  const text = (at, length) => new TextDecoder().decode(bytes.subarray(at, at + length));
  fields(new Cursor(bytes), (field, value, at, length) => {
    if (field === tensor.dims && value !== undefined) found.shape.push(value);
    else if (field === tensor.dims) {
      const dims = new Cursor(bytes.subarray(at, at + length));
      while (dims.left > 0) found.shape.push(varint(dims));
    } else if (field === tensor.data_type) found.type = numbers.get(value);
    else if (field === tensor.name) found.name = text(at, length);
    else if (field === tensor.raw_data) [found.start, found.bytes] = [start + at, length];
    else if (field === tensor.float_data && length !== undefined) [found.start, found.bytes] = [start + at, length];
    else if (field === tensor.double_data && length !== undefined) [found.start, found.bytes] = [start + at, length];
    else if (field === tensor.location && value === 1) found.foreign = "in another file";
    else if ([tensor.int32_data, tensor.int64_data].includes(field)) found.foreign = "in fields of protobuf";
  });
  found.count = product(found.shape);
  if (found.foreign || found.type === undefined || found.start === undefined) {
    found.foreign ??= found.type === undefined ? "a type without elements here" : "no elements";
    [found.shown, found.type, found.start, found.bytes] = [found.type, undefined, 0, 0];
  }
  return found;
}

export async function readOnnx(blob, types) {
  if (blob.size > 2 ** 31) fail("ONNX models of over 2 GiB keep their tensors in other files");
  const numbers = new Map(types.filter(type => type.onnx_number).map(type => [type.onnx_number, type.name]));
  const bytes = await bytesOf(blob, 0, blob.size);
  const tensors = [];
  const metadata = [];
  let nodes = 0;
  fields(new Cursor(bytes), (field, value, at, length) => {
    if (field === model.producer && length !== undefined) metadata.push(["producer", new TextDecoder().decode(bytes.subarray(at, at + length))]);
    if (field === model.ir_version && value !== undefined) metadata.push(["ir_version", String(value)]);
    if (field !== model.graph || length === undefined) return;
    fields(new Cursor(bytes.subarray(at, at + length)), (inner, _value, start, size) => {
      if (inner === graph.node) ++nodes;
      if (inner !== graph.initializer) return;
      const first = at + start;
      tensors.push(readTensor(bytes.subarray(first, first + size), blob, first, numbers));
    });
  });
  if (nodes === 0 && tensors.length === 0) fail("this is no ONNX model");
  metadata.push(["nodes", String(nodes)]);
  for (const [i, found] of tensors.entries()) found.name ??= `initializer ${i}`;
  return { format: "onnx", tensors: checkNames(tensors), metadata };
}
