// SPDX-License-Identifier: Apache-2.0
// A worker: holds the kernels, and answers one request after the other. The page's own holds the file, too; it has
// others read and convert parts of it, as one reads while another converts.

import { Engine } from "./engine.js";
import { openFile } from "./file_open.js";
import { castPart, convert, plan, study } from "./file_work.js";
import { Crew, startWorker } from "./kernels.js";

const most_workers = 4;

let engine = null;
let start = null;
let opened = null;
let crew = null;

function startCrew() {
  const count = Math.min(most_workers, navigator.hardwareConcurrency + 1);
  const calls = Array.from({ length: count }, () => startWorker(start.source, start.kernels, start.description));
  return Promise.all(calls).then(all => new Crew(all));
}

const shown = ({ name, shape, count, type, scheme, foreign, bytes, shown: hidden }) => ({ name, shape, count, type, scheme, foreign, bytes, hidden });

const requests = {
  start: data => {
    start = data;
    engine = Engine.compile(start.kernels, start.description);
  },
  open: async ({ file }) => {
    opened = await openFile(file, engine.description);
    crew ??= startCrew();
    return { format: opened.format, metadata: opened.metadata, tensors: opened.tensors.map(shown) };
  },
  study: ({ index, candidates }) => study(engine, opened.tensors[index], candidates),
  plan: ({ to }) => plan(engine, opened.tensors, to).map(({ to: type, to_bytes, reason }) => ({ to: type, to_bytes, reason })),
  convert: async ({ to, options, id }) => {
    return convert(engine, opened.tensors, opened.metadata, to, options, read => postMessage({ id, read }), await crew);
  },
  part: ({ tensor, part, begin, to, options }) => castPart(engine, tensor, part, begin, to, options),
};

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, result: await requests[data.request](data) });
  } catch (error) {
    postMessage({ id: data.id, error: error.message });
  }
};
