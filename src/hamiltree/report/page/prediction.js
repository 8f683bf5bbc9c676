// Rows typed by the reader, one or two side by side: what the included draws say about them, which
// features moved them, and their paths through a tree.

function predictionPanel(data, forest, featured) {
  const explain = makeEffects(data, forest);
  const figure = treeFigure(byId("row-tree"), data, { label: "the row's path through a tree", file: "row" });
  const choice = byId("row-choice");
  const which = byId("row-which");
  let comparing = false;
  featured.forEach((item, i) => choice.append(element("option", { value: i }, item.label)));
  choice.addEventListener("change", () => drawPath(true));
  which.addEventListener("change", () => drawPath(false));
  const panels = ["row", "second"].map((prefix, k) => makePanel(prefix, k));
  const active = () => (comparing ? panels : panels.slice(0, 1));
  byId("row").addEventListener("submit", (event) => event.preventDefault());

  function makePanel(prefix, k) {
    const form = element("div", { class: "fields" });
    const rest = element("div", { class: "fields" });
    const others = element("details", {
      class: "others", hidden: data.inputs.every((input) => input.asked) },
    element("summary", {}, "Columns that none of these trees uses"), rest);
    const answer = element("div", { class: "answer", id: k ? "second-answer" : "answer", "aria-live": "polite" });
    const moved = element("div", { class: "moved", id: k ? "second-moved" : "moved" });
    const path = element("ol", { class: "row-path", id: k ? "second-path" : "row-path" });
    const title = element("h3", { id: `${prefix}-name` }, k ? "Row B" : "Row A");
    const printed = element("table", { class: "print-only" });
    const box = element("section", { class: "panel", "aria-labelledby": title.id, hidden: k > 0 }, title,
      element("div", { class: "typed" }, form, others, printed),
      element("div", { class: "said" }, answer, moved,
        element("h3", { class: "sub" }, "Its path through the tree below"), path));
    byId("panels").append(box);
    const panel = { box, answer, moved, path, printed, found: null };
    panel.row = rowForm(prefix, data, form, rest, () => { update(panel); compare(); });
    return panel;
  }

  function update(panel) {
    const { row } = panel;
    panel.found = null;
    if (!row.complete()) {
      panel.answer.replaceChildren(element("p", { class: "empty" }, "Fill in every number."));
      panel.moved.replaceChildren();
      panel.path.replaceChildren();
      drawPath(false);
      return;
    }
    const numbers = row.numbers();
    panel.found = forest.predict(numbers);
    const label = data.classes ? panel.found.mean.indexOf(Math.max(...panel.found.mean)) : 0;
    panel.answer.replaceChildren(...(data.classes ? classAnswer : numberAnswer)(panel.found, data));
    if (explain) {
      panel.effects = explain(numbers, label);
      const input = (place) => data.inputs.findIndex((own) =>
        own.columns.some(({ column }) => data.columns[column].place === place));
      panel.moved.replaceChildren(
        effectsTable(panel.effects, data, label, (place) => row.shown(input(place))));
    }
    panel.printed.replaceChildren(...printedRow(data, row));
    drawPath(false);
  }

  /** The path of the chosen row through the chosen tree, drawn; each row has its own as text. */
  function drawPath(redraw) {
    if (panels.length < 2) return;
    const t = featured[Number(choice.value)].tree;
    if (redraw) figure.show(forest.nodes(t));
    figure.route(null);
    active().forEach((panel, k) => {
      if (!panel.found) return;
      const row = panel.row.numbers();
      const reached = forest.reach(t, row);
      panel.path.replaceChildren(...likeliestPath(forest.nodes(t), reached, data, forest.imputed(row)));
      if (k === (comparing ? Number(which.value) : 0)) figure.route(reached);
    });
  }

  /** What sets the two rows apart. */
  function compare() {
    const [first, second] = panels;
    const line = byId("comparison");
    const apart = comparing ? data.inputs.map((_, i) => i).filter((i) =>
      first.row.shown(i) !== second.row.shown(i)) : [];
    panels.forEach((panel) => panel.row.differ(apart));
    if (!comparing || !first.found || !second.found) {
      line.textContent = "";
      return;
    }
    const parts = apart.map((i) =>
      `${data.inputs[i].name} (${first.row.shown(i)} and ${second.row.shown(i)})`);
    const differ = parts.length ? `They differ in ${parts.join(", ")}.` : "The rows are the same: change one of them.";
    line.textContent = `${differenceText(first.found, second.found, data)} ${differ}`;
  }

  function toggle() {
    comparing = !comparing;
    byId("compare").setAttribute("aria-pressed", String(comparing));
    byId("panels").classList.toggle("comparing", comparing);
    byId("row-which-label").hidden = !comparing;
    panels[1].box.hidden = !comparing;
    if (comparing) panels[1].row.set(panels[0].row.values);
    if (comparing) update(panels[1]);
    which.value = "0";
    drawPath(false);
    compare();
    if (comparing) panels[1].box.querySelector("input, select").focus();
  }

  byId("compare").addEventListener("click", toggle);
  byId("row-reset").addEventListener("click", () => {
    panels.forEach((panel) => panel.row.set(data.inputs.map((input) => input.start)));
    active().forEach(update);
    compare();
  });
  byId("row-csv").addEventListener("click", () => {
    const rows = active().filter((panel) => panel.found).map((panel) => ({
      values: panel.row.values, found: panel.found, moved: explain ? panel.effects : null }));
    if (rows.length) download("rows.csv", "text/csv", rowsCsv(rows, data));
  });
  byId("row-print").addEventListener("click", () => {
    document.body.classList.add("one-row");
    window.print();
  });
  window.addEventListener("afterprint", () => document.body.classList.remove("one-row"));
  figure.show(forest.nodes(featured[0].tree));
  update(panels[0]);
  return { explain };
}

/** The row as a table, for paper, where fields and sliders say little. */
function printedRow(data, row) {
  return [element("caption", {}, "The row"), element("tbody", {}, ...data.inputs.map((input, i) =>
    element("tr", {}, element("th", { scope: "row" }, input.name), element("td", {}, row.shown(i)))))];
}

function differenceText(first, second, data) {
  if (!data.classes) {
    return `${data.target}: row A ${inTarget(first.mean, data)}, row B ${inTarget(second.mean, data)}.`;
  }
  const change = data.classes.map((_, k) => Math.abs(first.mean[k] - second.mean[k]));
  const k = data.classes.length === 2 ? 1 : change.indexOf(Math.max(...change));
  return `Probability of ${data.classes[k]}: row A ${probability(first.mean[k])}, `
    + `row B ${probability(second.mean[k])}.`;
}

/** Classes with their probabilities and intervals, the likeliest first. */
function classAnswer(found, data) {
  const order = data.classes.map((_, k) => k).sort((a, b) => found.mean[b] - found.mean[a]);
  return order.map((k, place) => {
    const [low, high] = found.intervals[k];
    const bar = element("div", { class: "meter" },
      piece(0, found.mean[k], "mean", classColour(k)), piece(low, high, "interval"));
    return element("div", { class: place ? "class" : "class best", "data-class": data.classes[k] },
      element("div", { class: "line" },
        element("span", { class: "name" }, data.classes[k]),
        element("span", { class: "value" }, probability(found.mean[k]))),
      bar,
      element("small", {}, `${data.coverage} interval ${span({ low, high }, probability)}`));
  });
}

function numberAnswer(found, data) {
  const units = (value) => inTarget(value, data);
  const [low, high] = found.interval;
  const from = Math.min(data.meanRange.low, low);
  const to = Math.max(data.meanRange.high, high);
  const on = (value) => (value - from) / (to - from || 1);
  return [
    element("div", { class: "class best" },
      element("div", { class: "line" },
        element("span", { class: "name" }, data.target),
        element("span", { class: "value" }, units(found.mean))),
      element("div", { class: "meter thin" },
        piece(on(low), on(high), "interval"), piece(on(found.mean) - 0.004, on(found.mean) + 0.004, "point")),
      element("small", {},
        `a new observation: ${data.coverage} interval ${targetSpan(low, high, data)}, sd ${units(found.sd)}`)),
  ];
}

function piece(from, to, kind, colour) {
  const part = element("span", { class: kind });
  part.style.left = `${100 * Math.max(0, from)}%`;
  part.style.width = `${100 * Math.max(0, Math.min(1, to) - Math.max(0, from))}%`;
  if (colour) part.style.background = colour;
  return part;
}

/** The steps of the likeliest way through a tree, each with its probability. */
function likeliestPath(nodes, reached, data, imputed) {
  const steps = [];
  let node = nodes[0];
  while (!node.leaf) {
    const next = reached[node.yes.index] >= reached[node.no.index] ? node.yes : node.no;
    const share = reached[next.index] / reached[node.index];
    const notes = imputedText(node, imputed);
    if (share < 0.995) notes.push(`with probability ${percent(share)}`);
    const noted = notes.length ? ` (${notes.join("; ")})` : "";
    steps.push(element("li", {}, statement(node, next.side) + noted));
    node = next;
  }
  const share = reached[node.index];
  const part = share < 0.995 ? `; the row ends here with probability ${percent(share)}` : "";
  steps.push(element("li", { class: "end" }, leafSentence(node, data) + part));
  return steps;
}

/** What a missing cell was imputed as for a split, and the split's threshold where it reads as a whole number
 * or a category, between which imputed numbers lie. */
function imputedText(node, imputed) {
  const { column, threshold } = node;
  const number = node.missingSide === "imputed" ? imputed.get(column) : undefined;
  if (number === undefined) return [];
  const text = (value) => withUnit(inUnits(value, column.span), column.unit);
  if (column.kind === "ordinal") {
    const ranks = `imputed as rank ${text(number)}; the threshold is rank ${text(threshold)}`;
    return [`${ranks}; ${column.categories[0]} is rank 0`];
  }
  return [`imputed as ${text(number)}`, ...(column.whole ? [`the threshold is ${text(threshold)}`] : [])];
}
