// SPDX-License-Identifier: Apache-2.0
// Promotion: the common type of two types by the rules of five projects, side by side.

import { h, labelled, svg, typeSelect } from "./elements.js";
import { moveInMatrix, shortName } from "./view_pair.js";

export const title = "Promotion";

const names = { openvino: "OpenVINO", numpy: "NumPy", torch: "PyTorch", jax: "JAX", jax_strict: "JAX, strict", tensorflow: "TensorFlow" };
const said = rules => names[rules] ?? rules;

export function show(engine, state) {
  const { options } = engine.description.promote_options;
  const all_rules = options.find(option => option.name === "rules").words;
  const a = engine.byName.get(state.get("a", "int32")) ?? engine.types[0];
  const b = engine.byName.get(state.get("b", "float16")) ?? engine.types[0];
  const chosen = all_rules.includes(state.get("rules")) ? state.get("rules") : all_rules[0];
  const flag = name => state.get(name) === "true";
  const settings = { promote_unsafe: flag("promote_unsafe"), pytorch_scalar_promotion: flag("pytorch_scalar_promotion") };
  if (engine.byName.has(state.get("u64_target"))) settings.u64_integer_promotion_target = state.get("u64_target");
  const scalars = { a_is_scalar: flag("a_is_scalar"), b_is_scalar: flag("b_is_scalar") };
  const answers_of = new Map();  // a pair is asked about many times
  const promote = (rules, x, y) => {
    const key = `${rules} ${x} ${y}`;
    if (!answers_of.has(key)) answers_of.set(key, engine.promote(x, y, { ...settings, rules }, scalars));
    return answers_of.get(key);
  };
  const check = (name, text, help) => {
    const box = h("input", { type: "checkbox", id: name, checked: flag(name), onchange: event => state.set({ [name]: event.target.checked || undefined }, { replace: true }) });
    return h("label", { class: "check", title: help }, box, ` ${text}`);
  };
  const numeric = engine.types.filter(type => type.bits > 0);
  const help = name => options.find(option => option.name === name)?.help;
  return [
    h("section", { class: "controls", "aria-label": "The types" }, h("div", { class: "fields" },
      labelled("Type a", typeSelect(engine.types, a.name, name => state.set({ a: name }), { id: "a" })),
      check("a_is_scalar", "a is a scalar", "rank 0"),
      labelled("type b", typeSelect(engine.types, b.name, name => state.set({ b: name }), { id: "b" })),
      check("b_is_scalar", "b is a scalar", "rank 0"),
      check("promote_unsafe", "promote_unsafe", help("promote_unsafe")),
      check("pytorch_scalar_promotion", "pytorch_scalar_promotion", help("pytorch_scalar_promotion")),
      labelled("u64 target", typeSelect(numeric, state.get("u64_target", "float32"), name => state.set({ u64_target: name === "float32" ? undefined : name }), { id: "u64_target" }), { title: help("u64_integer_promotion_target") }))),
    answers(all_rules, a, b, promote, state, chosen),
    matrices(engine, all_rules, promote, state, a, b, chosen),
    lattices(engine, all_rules, promote, state, chosen),
  ];
}

function answers(all_rules, a, b, promote, state, chosen) {
  const results = all_rules.map(rules => [rules, promote(rules, a.name, b.name)]);
  const found = new Set(results.map(([, result]) => result.type ?? "none"));
  return h("section", { class: "card", "aria-label": "The common type" },
    h("h2", {}, `${a.name} with ${b.name}`),
    h("p", { class: `badge large ${found.size === 1 ? "good" : "warn"}` }, found.size === 1 ? "All agree." : `${found.size} different answers.`),
    h("div", { class: "answers" }, results.map(([rules, { type, reason }]) =>
      h("a", { class: `answer ${rules === chosen ? "chosen" : ""}`, href: state.link({ rules }), "aria-current": rules === chosen ? "true" : undefined },
        h("span", { class: "who" }, said(rules)), type ? h("b", {}, type) : h("b", { class: "none" }, "none"), reason && h("span", { class: "note" }, reason)))));
}

// A colour for each type: the hue of its family, lighter for fewer bits.
function tone(type) {
  if (!type) return "var(--mild-soft)";
  const hue = { float: 210, integer: type.name.startsWith("u") ? 45 : 140, bool: 330, text: 0 }[type.family];
  const share = type.bits ? Math.log2(type.bits) / 6 : 0;
  const own = type.family === "float" && /e\d/.test(type.name) ? 40 : 0;
  return `hsl(${hue + own} 60% ${78 - 45 * share}%)`;
}

function matrices(engine, all_rules, promote, state, a, b, chosen) {
  const { types } = engine;
  const size = 7;
  const pictures = all_rules.map(rules => {
    const cells = [];
    types.forEach((x, i) => types.forEach((y, j) => {
      const type = engine.byName.get(promote(rules, x.name, y.name).type);
      if (type) cells.push(svg("rect", { x: j * size, y: i * size, width: size - 0.5, height: size - 0.5, fill: tone(type) }));
    }));
    const mark = svg("rect", { x: types.indexOf(b) * size - 1, y: types.indexOf(a) * size - 1, width: size + 1.5, height: size + 1.5, class: "here" });
    const side = types.length * size;
    const press = event => {
      const box = event.currentTarget.getBoundingClientRect();
      const at = (place, length) => types[Math.min(types.length - 1, Math.floor(place / length * types.length))].name;
      state.set({ rules, a: at(event.clientY - box.top, box.height), b: at(event.clientX - box.left, box.width) });
    };
    return h("figure", { class: rules === chosen ? "chosen" : "" },
      h("figcaption", {}, h("a", { href: state.link({ rules }) }, said(rules))),
      svg("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": `${said(rules)}: ${cells.length} of ${types.length ** 2} pairs have a common type`, onclick: press }, cells, mark));
  });
  const rows = types.map(x => h("tr", {}, h("th", { scope: "row" }, shortName(x.name)), types.map(y => {
    const { type, reason } = promote(chosen, x.name, y.name);
    const here = x === a && y === b;
    return h("td", { class: here ? "chosen" : "" }, h("a", { href: state.link({ a: x.name, b: y.name }), tabindex: here ? 0 : -1, title: `${x.name} with ${y.name}: ${type ?? reason}`, "aria-label": `${x.name} with ${y.name}: ${type ?? "none"}` }, type ? shortName(type) : "·"));
  })));
  const seen = [...new Set(types.flatMap(x => types.map(y => promote(chosen, x.name, y.name).type)))].filter(Boolean);
  return h("section", { "aria-label": "All pairs" }, h("h2", {}, "All pairs, side by side"),
    h("div", { class: "multiples" }, pictures),
    h("p", { class: "legend" }, types.filter(type => seen.includes(type.name)).map(type => h("span", {}, svg("svg", { class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true" }, svg("rect", { width: 1, height: 1, fill: tone(type) })), ` ${shortName(type.name)}`)), h("span", { class: "muted" }, "empty: no common type")),
    h("h2", {}, `Table of ${said(chosen)}`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${said(chosen)}` }, h("table", { class: "matrix words", onkeydown: moveInMatrix },
      h("thead", {}, h("tr", {}, h("td"), types.map(type => h("th", { scope: "col" }, h("span", {}, shortName(type.name)))))), h("tbody", {}, rows))));
}

// Which types promote to which: a type above another has it as common type, with none between. {nodes, edges, x, y, height}.
function lattice(engine, rules, promote, width, gap) {
  const nodes = engine.types.filter(type => promote(rules, type.name, type.name).type === type.name);
  const below = (x, y) => x !== y && promote(rules, x.name, y.name).type === y.name;
  const edges = nodes.flatMap(x => nodes.filter(y => below(x, y) && !nodes.some(z => z !== x && z !== y && below(x, z) && below(z, y))).map(y => [x, y]));
  const levels = new Map();
  const level = node => {
    if (!levels.has(node)) {
      levels.set(node, 0);
      levels.set(node, Math.max(0, ...edges.filter(([, y]) => y === node).map(([x]) => level(x) + 1)));
    }
    return levels.get(node);
  };
  nodes.forEach(level);
  const rows = [];
  for (const node of nodes) (rows[levels.get(node)] ??= []).push(node);
  const x = new Map();
  rows.forEach((row, i) => {
    const wish = node => {
      const from = edges.filter(([, to]) => to === node).map(([each]) => x.get(each)).filter(each => each !== undefined);
      return from.length ? from.reduce((p, q) => p + q) / from.length : (nodes.indexOf(node) + 0.5) / nodes.length * width;
    };
    const sorted = i === 0 ? row : [...row].sort((p, q) => wish(p) - wish(q));
    sorted.forEach((node, j) => x.set(node, (j + 0.5) / sorted.length * width));
  });
  const height = rows.length * gap;
  return { nodes, edges, height, x: node => x.get(node), y: node => height - gap / 2 - levels.get(node) * gap };
}

function lattices(engine, all_rules, promote, state, chosen) {
  const [width, gap, small] = [900, 62, 300];
  const all = new Map(all_rules.map(rules => [rules, lattice(engine, rules, promote, width, gap)]));
  const levels = Math.max(...[...all.values()].map(each => each.height / gap));
  const pictures = all_rules.map(rules => {
    const { nodes, edges, x, y, height } = all.get(rules);
    const at = node => ({ x: x(node) / width * small, y: (y(node) + levels * gap - height) / gap * 28 });
    return h("figure", { class: rules === chosen ? "chosen" : "" }, h("figcaption", {}, h("a", { href: state.link({ rules }) }, said(rules))),
      svg("svg", { class: "small-lattice", viewBox: `0 0 ${small} ${levels * 28}`, role: "img", "aria-label": `${said(rules)}: ${nodes.length} types, ${edges.length} lines` },
        edges.map(([from, to]) => svg("line", { x1: at(from).x, y1: at(from).y, x2: at(to).x, y2: at(to).y })),
        nodes.map(node => svg("circle", { cx: at(node).x, cy: at(node).y, r: 4.5, fill: tone(node) }, svg("title", {}, node.name)))));
  });
  const { nodes, edges, x, y, height } = all.get(chosen);
  const description = edges.map(([from, to]) => `${from.name} to ${to.name}`).join(", ");
  return h("section", { "aria-label": "Lattice" }, h("h2", {}, "Lattices, side by side"),
    h("p", { class: "note" }, "A line leads up from a type to the next one that it becomes. Types in the colours above."),
    h("div", { class: "multiples wide" }, pictures),
    h("h2", {}, `Lattice of ${said(chosen)}`),
    edges.length === 0 && h("p", { class: "note" }, "No type becomes another without being asked."),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Drawing of the lattice" },
      svg("svg", { class: "lattice", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description || "no edges" },
        edges.map(([from, to]) => svg("line", { x1: x(from), y1: y(from) - 10, x2: x(to), y2: y(to) + 10 })),
        nodes.map(node => svg("g", {}, svg("rect", { x: x(node) - 36, y: y(node) - 12, width: 72, height: 24, rx: 6 }), svg("text", { x: x(node), y: y(node) + 4, "text-anchor": "middle" }, shortName(node.name)))))));
}
