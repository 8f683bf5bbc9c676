// A tree as a drawing. Wide enough, it stands on its leaves; otherwise it is an outline, a line a
// node. Pointing at a node, or moving to it with the arrow keys, shows what is known about it;
// a click, Enter or the space bar marks the path that its rows take.

const OUTLINE_BESIDE = 420; // wider outlines would be illegible in half of a printed page
const NODE = { width: 128, wide: 190, gapX: 14, gapY: 46, padding: 8, line: 15, font: 12.5 };

/**
 * Draws into `figure` and returns {show, route}: show(nodes) draws a tree, and route(reached) marks
 * how far a row gets, or nothing if it is null.
 */
function treeFigure(figure, data, options = {}) {
  const card = element("div", { class: "card", role: "status", hidden: true });
  const stage = element("div", { class: "stage" });
  const path = element("p", { class: "path", "aria-live": "polite" });
  figure.append(stage, card, path, saveButton(stage, options.file));
  let nodes = [];
  let groups = [];
  let marked = null;
  let reached = null;
  let width = 0;

  function show(newNodes) {
    nodes = newNodes;
    marked = null;
    draw();
  }

  function draw() {
    if (availableWidth(figure) < 100) return; // hidden, as in print
    width = availableWidth(figure);
    card.hidden = true;
    const placed = place(nodes, data, width);
    // On paper two others share a line.
    figure.classList.toggle("broad", placed.outline ? width > OUTLINE_BESIDE : placed.width > 1.3 * placed.height);
    groups = nodes.map((node, i) => nodeGroup(node, placed.boxes[i], placed, data));
    const svg = svgElement("svg", {
      width: placed.width, height: placed.height, class: placed.outline ? "tree outline" : "tree",
      viewBox: `0 0 ${placed.width} ${placed.height}`, role: "tree",
      "aria-label": options.label || "decision tree",
    });
    const edges = nodes.map((node) => (node.parent ? edgeOf(node, placed) : null));
    svg.append(...edges.filter(Boolean), ...groups);
    groups.forEach((group, i) => listen(group, nodes[i]));
    groups[0].setAttribute("tabindex", 0);
    stage.replaceChildren(svg);
    paint();
  }

  function listen(group, node) {
    group.addEventListener("pointerenter", () => showCard(node));
    group.addEventListener("pointerleave", () => { card.hidden = true; });
    group.addEventListener("focus", () => showCard(node));
    group.addEventListener("blur", () => { card.hidden = true; });
    group.addEventListener("click", () => { focusOn(node); mark(node); });
    group.addEventListener("keydown", (event) => {
      const to = neighbour(node, event.key);
      if (event.key === "Escape") { mark(null); card.hidden = true; }
      else if (event.key === "Enter" || event.key === " ") mark(node);
      else if (to) focusOn(to);
      else return;
      event.preventDefault();
    });
  }

  function neighbour(node, key) {
    const i = nodes.indexOf(node);
    if (key === "ArrowUp") return node.parent;
    if (key === "ArrowDown") return node.yes;
    if (key === "ArrowLeft") return nodes[i - 1];
    if (key === "ArrowRight") return nodes[i + 1];
    if (key === "Home") return nodes[0];
    if (key === "End") return nodes[nodes.length - 1];
    return null;
  }

  function focusOn(node) {
    groups.forEach((group, i) => group.setAttribute("tabindex", nodes[i] === node ? 0 : -1));
    groups[nodes.indexOf(node)].focus();
  }

  function mark(node) {
    marked = marked === node ? null : node;
    paint();
  }

  /** Classes of what is on the marked path, or on the way of the typed row. */
  function paint() {
    const on = new Set();
    for (let here = marked; here; here = here.parent) on.add(here);
    const dim = marked !== null || reached !== null;
    figure.classList.toggle("marked", dim);
    nodes.forEach((node, i) => {
      const share = marked ? Number(on.has(node)) : reached ? reached[node.index] : 1;
      groups[i].style.opacity = dim ? 0.45 + 0.55 * Math.min(1, 2 * share) : "";
      groups[i].classList.toggle("on", dim && share >= 0.5);
      groups[i].setAttribute("aria-selected", String(on.has(node)));
      const tag = groups[i].querySelector(".reached");
      tag.textContent = !marked && reached && node.leaf && share >= 0.005 ? percent(share) : "";
    });
    stage.querySelectorAll(".edge").forEach((edge) => {
      const node = nodes[Number(edge.dataset.node)];
      const share = marked ? Number(on.has(node)) : reached ? reached[node.index] : 0;
      edge.classList.toggle("on", share >= 0.5);
      if (share >= 0.5) groups[0].before(edge); // above the other lines
    });
    path.textContent = marked ? sentence(marked) : "";
  }

  function sentence(node) {
    const steps = pathTo(node);
    const rows = Number.isFinite(node.rows) ? rowsText(node, "training row") : "These rows";
    const by = node.assigned && Number.isFinite(node.rows) ? "by" : "with";
    const where = steps.length ? ` ${by} ${steps.join(", and ")}` : "";
    if (!node.leaf) return `${rows}${where}; then: ${question(node).name} ${question(node).test}?`;
    return `${rows}${where}: ${leafSentence(node, data)}`;
  }

  function showCard(node) {
    const title = node.leaf ? "Leaf" : `${question(node).name} ${question(node).test}?`;
    const list = element("dl", {}, ...facts(node, data).flatMap(([label, value]) => [
      element("dt", {}, label), element("dd", {}, value)]));
    card.replaceChildren(element("strong", {}, title), list);
    card.hidden = false;
    const box = groups[nodes.indexOf(node)].getBoundingClientRect();
    const frame = figure.getBoundingClientRect();
    const left = box.left - frame.left + box.width / 2 - card.offsetWidth / 2;
    card.style.left = `${Math.max(0, Math.min(left, frame.width - card.offsetWidth))}px`;
    card.style.top = `${box.bottom - frame.top + 6}px`;
  }

  function route(newReached) {
    reached = newReached;
    marked = null;
    paint();
  }

  new ResizeObserver(() => {
    if (nodes.length && Math.abs(availableWidth(figure) - width) > 1) draw();
  }).observe(figure.closest("section"));
  return { show, route };
}

/** Room for the drawing, also while the figure itself is hidden. */
function availableWidth(figure) {
  return figure.closest("section").clientWidth - 2;
}

function leafSentence(node, data) {
  if (!data.classes) return `${data.target} ${inTarget(node.mean, data)}`;
  return ranked(node, data).slice(0, 3)
    .map((item) => `${item.name} ${probability(item.value)}`).join(", ");
}
