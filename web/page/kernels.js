// SPDX-License-Identifier: Apache-2.0
// Loads the module with the kernels, which is beside the page, when it is needed; and starts the worker.

import { Engine } from "./engine.js";
import { h } from "./elements.js";

export function bytesOfBase64(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

let loading = null;

// The bytes of the module. A script, as pages on a disk may not fetch.
export function kernelBytes() {
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: "kernels.js" });
    script.onload = () => resolve(bytesOfBase64(globalThis.tensorcastKernels));
    script.onerror = () => {
      loading = null;
      reject(new Error("kernels.js is not beside this page: it does the work on files and blocks"));
    };
    document.head.append(script);
  });
  return loading;
}

let kernels = null;

// The kernels on the page's own thread.
export async function kernelEngine(engine) {
  const bytes = await kernelBytes();
  kernels ??= Engine.compile(bytes, engine.description);
  return kernels;
}

// A worker with the kernels: call(request, values, {progress}) returns the answer.
export async function startWorker(source, kernels, description) {
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
    const { resolve, reject, progress } = waiting.get(data.id);
    if (data.read !== undefined) return progress?.(data.read);
    waiting.delete(data.id);
    return data.error === undefined ? resolve(data.result) : reject(new Error(data.error));
  };
  const call = (request, values = {}, { progress } = {}) => new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject, progress });
    worker.postMessage({ id: last, request, ...values });
  });
  await call("start", { source, kernels, description });
  return call;
}

// The page's worker, which starts others of the same source.
export async function startPagesWorker(engine) {
  return startWorker(document.getElementById("worker").textContent, await kernelBytes(), engine.description);
}

// Workers that each do one request at a time.
export class Crew {
  #idle;
  #wanted = [];

  constructor(calls) { this.#idle = [...calls]; }

  // Starts a request as soon as a worker is idle: {done}, a promise of the answer.
  async start(request, values) {
    const call = this.#idle.pop() ?? await new Promise(resolve => this.#wanted.push(resolve));
    const next = () => {
      const taker = this.#wanted.shift();
      if (taker) taker(call);
      else this.#idle.push(call);
    };
    const done = call(request, values);
    done.then(next, next);
    return { done };
  }
}
