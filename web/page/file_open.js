// SPDX-License-Identifier: Apache-2.0
// The readers of files, found by what a file begins with.

import { bytesOf, fail } from "./file_bytes.js";
import { readGguf } from "./file_gguf.js";
import { readNpy, readNpz } from "./file_numpy.js";
import { readOnnx } from "./file_onnx.js";
import { readSafetensors } from "./file_safetensors.js";

// {format, tensors, metadata}. A tensor: name, shape, count; type, or scheme of blocks, or foreign: why there are no
// numbers; blob, start, bytes: where its elements are; deflated: the blob is compressed.
export async function openFile(blob, description) {
  if (blob.size < 8) fail("the file is empty, or nearly");
  const begin = await bytesOf(blob, 0, 8);
  const text = String.fromCharCode(...begin);
  if (text.startsWith("GGUF")) return readGguf(blob, description.block_formats);
  if (text.startsWith("\x93NUMPY")) return readNpy(blob);
  if (text.startsWith("PK")) return readNpz(blob);
  if (/\.onnx$/i.test(blob.name ?? "")) return readOnnx(blob, description.types);
  if (/\.(pt|pth|bin|ckpt)$/i.test(blob.name ?? "")) fail("checkpoints of PyTorch are read by tcast convert; save safetensors for this page");
  return readSafetensors(blob);
}
