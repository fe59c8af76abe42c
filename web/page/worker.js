// The worker: holds the kernels and the file, and answers one request after the other.
// SPDX-License-Identifier: Apache-2.0
import { Engine } from "./engine.js";
import { openFile } from "./file_open.js";
import { convert, plan, study } from "./file_work.js";

let engine = null;
let opened = null;

const shown = ({ name, shape, count, type, scheme, foreign, bytes, shown: hidden }) => ({ name, shape, count, type, scheme, foreign, bytes, hidden });

const requests = {
  start: ({ kernels, description }) => { engine = Engine.compile(kernels, description); },
  open: async ({ file }) => {
    opened = await openFile(file, engine.description);
    return { format: opened.format, metadata: opened.metadata, tensors: opened.tensors.map(shown) };
  },
  study: ({ index, candidates }) => study(engine, opened.tensors[index], candidates),
  plan: ({ to }) => plan(engine, opened.tensors, to).map(({ to: type, to_bytes, reason }) => ({ to: type, to_bytes, reason })),
  convert: ({ to, options, id }) => convert(engine, opened.tensors, opened.metadata, to, options, read => postMessage({ id, read })),
};

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, result: await requests[data.request](data) });
  } catch (error) {
    postMessage({ id: data.id, error: error.message });
  }
};
