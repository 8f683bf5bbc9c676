// The parts of a tree's drawing: what is written in a box, where boxes stand, how they look.

/** Lines of text of a node and the height of its box, `width` pixels wide. */
function boxOf(node, data, width, outline) {
  const inner = width - 2 * NODE.padding;
  const side = outline && node.side ? `${node.side}: ` : "";
  const lines = (text, most, weight) => wrapped(text, inner, NODE.font, most, weight);
  let title;
  let detail = [];
  const notes = [];
  if (!node.leaf) {
    const { name, test } = question(node);
    if (outline) title = lines(`${side}${name} ${test}`, 6, 600);
    else if (node.terms) title = name.split(/(?<= \+) /).flatMap((term) => lines(term, 2, 600));
    else title = lines(name, 3, 600);
    if (!outline) detail = lines(test, 3);
    notes.push(...softMarks(node)
      .filter(([label]) => label.startsWith("at ")).map((pair) => pair.join(": ")));
    if (Number.isFinite(node.certainty)) notes.push(`${percent(node.certainty)} of trees`);
  } else {
    const best = data.classes ? ranked(node, data)[0] : null;
    const value = best ? probability(best.value) : inTarget(node.mean, data);
    const name = best ? best.name : "";
    title = lines(`${side}${outline ? `${name} ${value}`.trim() : name || value}`, 2, 600);
    if (!outline && best) detail = [value];
  }
  if (node.leaf && Number.isFinite(node.rows)) {
    notes.push(rowsText({ ...node, rows: Math.round(node.rows) }, "row"));
  }
  const height = (title.length + detail.length + notes.length) * NODE.line + 2 * NODE.padding + 8;
  return { title, detail, notes, height };
}

/** Boxes and the positions of their top left corners, side by side if they fit into `width`. */
function place(nodes, data, width) {
  const leaves = nodes.filter((node) => node.leaf).length;
  const box = nodes.some((node) => node.terms) ? NODE.wide : NODE.width;
  const needed = leaves * (box + NODE.gapX) - NODE.gapX + 4;
  if (needed > width) return outlined(nodes, data, width);
  const boxes = nodes.map((node) => boxOf(node, data, box, false));
  return sideBySide(nodes, boxes, needed, box);
}

function sideBySide(nodes, boxes, width, box) {
  const depth = Math.max(...nodes.map((node) => node.depth));
  const heights = Array.from({ length: depth + 1 }, (_, level) =>
    Math.max(...nodes.map((node, i) => (node.depth === level ? boxes[i].height : 0))));
  const tops = heights.map((_, level) =>
    2 + heights.slice(0, level).reduce((sum, h) => sum + h + NODE.gapY, 0));
  const at = new Map(nodes.map((node) => [node, { x: 0, y: tops[node.depth] }]));
  let next = 2;
  for (const node of nodes.filter((one) => one.leaf)) {
    at.get(node).x = next;
    next += box + NODE.gapX;
  }
  // Children come after their parent in preorder, so that in reverse they are placed first.
  for (const node of nodes.filter((one) => !one.leaf).reverse()) {
    at.get(node).x = (at.get(node.yes).x + at.get(node.no).x) / 2;
  }
  return finish(nodes, boxes, at, { outline: false, width, boxWidth: () => box });
}

function outlined(nodes, data, width) {
  const indent = Math.min(22, width / (3 * Math.max(1, ...nodes.map((node) => node.depth))));
  const left = (node) => 2 + indent * node.depth;
  const boxWidth = (node) => Math.min(width - left(node) - 2, 340);
  const boxes = nodes.map((node) => boxOf(node, data, boxWidth(node), true));
  const at = new Map();
  let y = 2;
  nodes.forEach((node, i) => {
    at.set(node, { x: left(node), y });
    y += boxes[i].height + 8;
  });
  return finish(nodes, boxes, at, { outline: true, width, boxWidth, indent });
}

function finish(nodes, boxes, at, layout) {
  const heightOf = new Map(nodes.map((node, i) => [node, boxes[i].height]));
  const height = Math.max(...nodes.map((node) => at.get(node).y + heightOf.get(node))) + 20;
  const rows = nodes[0].rows;
  return { ...layout, boxes, at, heightOf, height, rows, order: new Map(nodes.map((node, i) => [node, i])) };
}

/** The line from a node's parent to it, with "yes" or "no", thicker the more rows take it. */
function edgeOf(node, placed) {
  const from = placed.at.get(node.parent);
  const to = placed.at.get(node);
  const share = placed.rows > 0 ? node.rows / placed.rows : 0.3;
  const group = svgElement("g", { class: "edge", "data-node": placed.order.get(node) });
  let d;
  let label;
  if (placed.outline) {
    const x = from.x + placed.indent / 2;
    const y = to.y + placed.heightOf.get(node) / 2;
    d = `M${x},${from.y + placed.heightOf.get(node.parent)}V${y}H${to.x}`;
    label = null;
  } else {
    const half = placed.boxWidth(node) / 2;
    const x1 = from.x + half;
    const y1 = from.y + placed.heightOf.get(node.parent);
    const x2 = to.x + half;
    const middle = (y1 + to.y) / 2;
    d = `M${x1},${y1}C${x1},${middle} ${x2},${middle} ${x2},${to.y}`;
    label = { x: (x1 + x2) / 2 + (node.side === "yes" ? -16 : 16), y: middle + 1 };
  }
  group.append(svgElement("path", {
    d, "stroke-width": (1.2 + 5 * Math.sqrt(Number.isFinite(share) ? share : 0.1)).toFixed(2) }));
  if (label) group.append(svgElement("text", { ...label, class: "side" }, node.side));
  return group;
}

function nodeGroup(node, box, placed, data) {
  const { x, y } = placed.at.get(node);
  const width = placed.boxWidth(node);
  const middle = x + width / 2;
  const group = svgElement("g", {
    class: node.leaf ? "node leaf" : "node split", role: "treeitem", tabindex: -1,
    "aria-level": node.depth + 1, "aria-label": spoken(node, data),
    "data-node": placed.order.get(node),
  });
  const shape = svgElement("rect", {
    x, y, width, height: box.height, rx: node.leaf ? 12 : 4, class: "box" });
  if (node.leaf) shape.style.setProperty("--fill", leafColour(node, data));
  group.append(shape);
  let line = y + NODE.padding + NODE.line - 3;
  const anchor = placed.outline ? x + NODE.padding : middle;
  for (const kind of ["title", "detail", "notes"]) {
    for (const text of box[kind]) {
      group.append(svgElement("text", { x: anchor, y: line, class: kind }, text));
      line += NODE.line;
    }
  }
  group.append(...bars(node, data, x + NODE.padding, y + box.height, width - 2 * NODE.padding));
  // How much of a typed row ends here: under the leaf, or at the end of its line.
  group.append(svgElement("text", placed.outline
    ? { x: x + width - NODE.padding, y: y + NODE.padding + NODE.line - 3, class: "reached" }
    : { x: middle, y: y + box.height + 14, class: "reached" }));
  return group;
}

/** A bar at the foot of a box: the share of the trees that have a split, a leaf's classes, or its mean on y's scale. */
function bars(node, data, x, bottom, width) {
  const bar = (from, length, kind, colour, height = 4) => {
    const rect = svgElement("rect", {
      x: x + from * width, y: bottom - 6 - height / 2, width: Math.max(0, length * width),
      height, class: `bar ${kind}`, rx: 1 });
    if (colour) rect.style.fill = colour;
    return rect;
  };
  if (!node.leaf) {
    if (!Number.isFinite(node.certainty)) return [];
    return [bar(0, 1, "empty"), bar(0, node.certainty, "share")];
  }
  if (data.classes) {
    let before = 0;
    return node.probabilities.map((value, k) => {
      before += value;
      return bar(before - value, value, "class", classColour(k));
    });
  }
  const { low, high } = data.meanRange;
  const on = (value) => Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  const [from, to] = node.interval;
  const parts = [bar(0, 1, "empty", null, 2)];
  if (Number.isFinite(from)) parts.push(bar(on(from), on(to) - on(from), "interval"));
  parts.push(svgElement("circle", {
    cx: x + on(node.mean) * width, cy: bottom - 6, r: 4, class: "dot" }));
  return parts;
}

function classColour(k) {
  return `var(--c${k % 8})`;
}

/** The likeliest class, paler the less probable; means from pale to full. */
function leafColour(node, data) {
  let strength;
  let colour = "var(--c0)";
  if (data.classes) {
    const [best] = ranked(node, data);
    const chance = 1 / data.classes.length;
    strength = 0.1 + 0.45 * Math.max(0, (best.value - chance) / (1 - chance || 1));
    colour = classColour(best.k);
  } else {
    const { low, high } = data.meanRange;
    strength = 0.06 + 0.44 * Math.min(1, Math.max(0, (node.mean - low) / (high - low || 1)));
  }
  return `color-mix(in srgb, ${colour} ${Math.round(100 * strength)}%, var(--paper))`;
}
