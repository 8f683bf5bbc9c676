// Puts the page together from its data.

function featuredTrees(data, forest) {
  const tabs = byId("tree-tabs");
  const figures = byId("tree-figures");
  data.featured.forEach((item, i) => {
    const id = `tree-${i}`;
    const note = element("p", { class: "note" }, item.note);
    const figure = element("figure", { class: "tree-figure", id: `${id}-figure` },
      element("figcaption", {}, item.label), note);
    figures.append(figure);
    treeFigure(figure, data, { label: item.label, file: `tree-${i + 1}` }).show(forest.nodes(item.tree));
    figure.append(element("details", {}, element("summary", {}, "As text"),
      element("pre", { tabindex: 0 }, item.text)));
    const radio = element("input", { type: "radio", name: "tree", id, checked: i === 0 });
    radio.addEventListener("change", select);
    tabs.append(radio, element("label", { for: id }, item.short));
  });
  function select() {
    [...figures.children].forEach((figure, i) =>
      figure.classList.toggle("unselected", !byId(`tree-${i}`).checked));
  }
  select();
}

function drawsSlider(data, forest) {
  const slider = byId("draw");
  const figure = treeFigure(byId("draw-tree"), data, { label: "the tree of this draw", file: "draw" });
  const move = drawStrip(byId("draw-strip"), data, (i) => { slider.value = i; update(); });
  slider.max = forest.nDraws - 1;
  function update() {
    const i = Number(slider.value);
    const { chain, draw, logPosterior, leaves } = data.drawn;
    const text = `chain ${chain[i]}, draw ${draw[i]}: ${leaves[i]} ${leaves[i] === 1 ? "leaf" : "leaves"}, `
      + `log posterior ${logPosterior[i].toFixed(1)}`;
    byId("draw-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    figure.show(forest.nodes(i));
    move(i);
  }
  slider.addEventListener("input", update);
  update();
}

function convergence(data) {
  const rows = data.convergence.map((item) => element("tr", { class: item.good ? "" : "bad" },
    element("th", { scope: "row" }, item.name), element("td", {}, item.rhat), element("td", {}, item.ess)));
  byId("rhat").append(...rows);
  leavesChart(byId("leaves-chart"), data);
  byId("trace").hidden = data.trace === null;
  if (data.trace) traceChart(byId("trace-chart"), data);
  const legend = data.leaves.byChain.length > 1 && data.leaves.byChain.length <= 8;
  for (const place of document.querySelectorAll(".legend")) {
    place.hidden = !legend;
    data.leaves.byChain.forEach((_, chain) => place.append(
      element("span", { class: `key c${chain}` }), `chain ${chain} `));
  }
}

function start() {
  const data = JSON.parse(byId("data").textContent);
  const forest = makeForest(data);
  // For whoever wants the numbers themselves: hamiltree.predict([one number per used column]).
  window.hamiltree = {
    data, predict: forest.predict, reach: forest.reach, nodes: forest.nodes, softMarks,
    spoken: (node) => spoken(node, data),
  };
  featuredTrees(data, forest);
  window.hamiltree.explain = predictionPanel(data, forest, data.featured).explain;
  if (data.features.length) {
    featureBars(byId("feature-bars"), data);
    thresholdPlots(byId("thresholds"), data);
  }
  drawsSlider(data, forest);
  convergence(data);
  if (data.performance) performance(data);
  document.body.classList.add("ready");
}

start();
