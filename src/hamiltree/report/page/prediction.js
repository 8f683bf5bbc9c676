// A row typed by the reader: what the included draws say about it, and its path through a tree.

function predictionPanel(data, forest, featured) {
  const form = byId("row-form");
  const rest = byId("row-rest");
  const values = data.inputs.map((input) => input.start);
  const figure = treeFigure(byId("row-tree"), data, { label: "the row's path through a tree" });
  const choice = byId("row-choice");
  featured.forEach((item, i) => choice.append(element("option", { value: i }, item.label)));
  choice.addEventListener("change", () => update(true));

  data.inputs.forEach((input, i) => {
    const id = `row-${i}`;
    const field = input.kind === "number"
      ? element("input", { id, type: "number", step: "any", value: input.start })
      : element("select", { id }, ...input.categories.map((category) =>
        element("option", { value: category, selected: category === input.start }, category)));
    const hint = element("small", { id: `${id}-hint` });
    field.setAttribute("aria-describedby", hint.id);
    field.addEventListener("input", () => { read(); });
    function read() {
      values[i] = input.kind === "number" ? Number.parseFloat(field.value) : field.value;
      const empty = input.missing && Number.isNaN(values[i]);
      const outside = input.kind === "number" && !empty
        && !(values[i] >= input.low && values[i] <= input.high);
      const range = `${input.lowText} to ${input.highText}`;
      hint.textContent = "";
      if (input.kind === "number") {
        hint.textContent = `${outside ? "outside the training range " : ""}${range}`;
        if (empty) hint.textContent = "missing";
      }
      hint.classList.toggle("outside", outside);
      update(false);
    }
    const box = element("div", { class: "field" }, element("label", { for: id }, input.name), field, hint);
    (input.asked ? form : rest).append(box);
    input.read = read;
  });
  byId("row-others").hidden = data.inputs.every((input) => input.asked);
  byId("row").addEventListener("submit", (event) => event.preventDefault());

  /** One number a used column, in the user's units. */
  function row() {
    const numbers = new Array(data.columns.length).fill(0);
    data.inputs.forEach((input, i) => {
      for (const { column, category } of input.columns) {
        if (input.kind === "number") numbers[column] = values[i];
        else if (["ordinal", "category"].includes(input.kind)) {
          numbers[column] = input.categories.indexOf(values[i]);
        }
        else numbers[column] = values[i] === category ? 1 : 0;
      }
    });
    return numbers;
  }

  function update(redraw) {
    const t = featured[Number(choice.value)].tree;
    if (redraw) figure.show(forest.nodes(t));
    const numbers = row();
    const answer = byId("answer");
    const unfilled = data.inputs.some((input, i) =>
      input.kind === "number" && !input.missing && !Number.isFinite(values[i]));
    if (unfilled) {
      answer.replaceChildren(element("p", { class: "empty" }, "Fill in every number."));
      byId("row-path").replaceChildren();
      figure.route(null);
      return;
    }
    const found = forest.predict(numbers);
    answer.replaceChildren(...(data.classes ? classAnswer(found, data) : numberAnswer(found, data)));
    const reached = forest.reach(t, numbers);
    figure.route(reached);
    byId("row-path").replaceChildren(...likeliestPath(forest.nodes(t), reached, data));
  }

  data.inputs.forEach((input) => input.read());
  update(true);
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
  const units = (value) => inUnits(value, 4 * data.ySd);
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
        `a new observation: ${data.coverage} interval ${span({ low, high }, units)}, sd ${units(found.sd)}`)),
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
function likeliestPath(nodes, reached, data) {
  const steps = [];
  let node = nodes[0];
  while (!node.leaf) {
    const next = reached[node.yes.index] >= reached[node.no.index] ? node.yes : node.no;
    const share = reached[next.index] / reached[node.index];
    const sure = share < 0.995 ? ` (${percent(share)} of it goes this way)` : "";
    steps.push(element("li", {}, statement(node, next.side) + sure));
    node = next;
  }
  const share = reached[node.index];
  const part = share < 0.995 ? `; ${percent(share)} of the row ends in this leaf` : "";
  steps.push(element("li", { class: "end" }, leafSentence(node, data) + part));
  return steps;
}
