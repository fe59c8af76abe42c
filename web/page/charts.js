// SPDX-License-Identifier: Apache-2.0
// Pictures of many numbers on a canvas, in the colours of the page, with what the pointer is at as text.

import { h } from "./elements.js";

export const color = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A canvas that draws itself when it has a size, and again when that or the colours change.
// draw(context, width, height); pick(x, y) returns the text for a place, or undefined.
export function canvas({ height, label, draw, pick }) {
  const element = h("canvas", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  const readout = h("p", { class: "readout note" }, pick ? "point at it to read values" : "");
  const paint = () => {
    const width = element.clientWidth;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    const context = element.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    draw(context, width, height);
  };
  new ResizeObserver(paint).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  if (pick) {
    element.addEventListener("pointermove", event => {
      const text = pick(event.offsetX, event.offsetY, element.clientWidth, height);
      if (text) readout.textContent = text;
    });
  }
  return h("div", { class: "figure" }, element, readout);
}

// Marks of a scale of powers of two: as many as have room, on round exponents.
export function exponentMarks(low, high, most) {
  const steps = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512];
  const step = steps.find(each => (high - low) / each <= most) ?? 1024;
  const marks = [];
  for (let e = Math.ceil(low / step) * step; e <= high; e += step) marks.push(e);
  return marks;
}

export const power = exponent => `2^${exponent}`;

const superscripts = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
export const powerText = exponent => `2${[...String(exponent)].map(digit => superscripts[digit]).join("")}`;

// Axes of a plot of powers of two in both directions. Returns the functions from exponents to pixels.
export function logAxes(context, width, height, { x: [x0, x1], y: [y0, y1], x_label, y_label, y_text = powerText }) {
  const left = 52, right = 8, top = 8, bottom = 34;
  const x = e => left + (e - x0) / (x1 - x0 || 1) * (width - left - right);
  const y = e => height - bottom - (e - y0) / (y1 - y0 || 1) * (height - top - bottom);
  context.strokeStyle = color("edge");
  context.fillStyle = color("muted");
  context.lineWidth = 1;
  context.beginPath();
  for (const e of exponentMarks(x0, x1, width / 60)) {
    context.moveTo(x(e), top);
    context.lineTo(x(e), height - bottom);
    context.textAlign = x(e) > width - right - 12 ? "right" : "center";
    context.fillText(powerText(e), Math.min(x(e), width - 2), height - bottom + 14);
  }
  for (const e of exponentMarks(y0, y1, height / 30)) {
    context.moveTo(left, y(e));
    context.lineTo(width - right, y(e));
    context.textAlign = "right";
    context.fillText(y_text(e), left - 6, y(e) + 4);
  }
  context.stroke();
  context.textAlign = "center";
  context.fillText(x_label, (left + width) / 2, height - 4);
  context.save();
  context.translate(12, height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(y_label, 0, 0);
  context.restore();
  return { x, y, fromX: pixel => x0 + (pixel - left) / (width - left - right) * (x1 - x0) };
}
