// How well rows were predicted that the trees had not seen.

const PLOT = { left: 46, right: 22, top: 26, bottom: 40 };

/** A square or wide plot with axes from `low` to `high`; returns the two scales. */
function frame(svg, width, height, x, y) {
  const across = (value) => PLOT.left
    + ((width - PLOT.left - PLOT.right) * (value - x.low)) / (x.high - x.low || 1);
  const down = (value) => height - PLOT.bottom
    - ((height - PLOT.top - PLOT.bottom) * (value - y.low)) / (y.high - y.low || 1);
  svg.append(line(across(x.low), down(y.low), across(x.high), down(y.low), "axis"),
    line(across(x.low), down(y.low), across(x.low), down(y.high), "axis"));
  for (const tick of x.ticks) {
    svg.append(label(across(tick.at), down(y.low) + 15, tick.text,
      { "text-anchor": "middle", class: "tick" }));
  }
  for (const tick of y.ticks) {
    svg.append(label(PLOT.left - 5, down(tick.at) + 4, tick.text,
      { "text-anchor": "end", class: "tick" }));
  }
  svg.append(label((across(x.low) + across(x.high)) / 2, height - 6, x.name,
    { "text-anchor": "middle", class: "tick" }), label(2, 12, y.name, { class: "tick" }));
  return { across, down };
}

const SHARES = [0, 0.25, 0.5, 0.75, 1].map((at) => ({ at, text: `${100 * at}%` }));

function shares(name) {
  return { low: 0, high: 1, name, ticks: SHARES };
}

/** About five round numbers between two ends. */
function roundTicks(low, high) {
  const span = high - low || 1;
  const unit = 10 ** Math.floor(Math.log10(span / 4));
  const step = [1, 2, 5, 10].map((times) => times * unit).find((size) => span / size <= 6);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) {
    ticks.push({ at: k * step, text: roughly(k * step, span) });
  }
  return ticks;
}

/** A chart as high as it is wide, within reason. */
function squareChart(container, text, file, draw) {
  const side = Math.max(220, Math.min(340, container.clientWidth || 320));
  chart(container, side, text, (svg, width) => draw(svg, Math.min(width, side + 40), side),
    file);
}

/** Predicted probabilities against shares that happened, for the classes in `shown`. */
function calibrationChart(container, data, shown) {
  const text = "predicted probability and observed share, with 90% intervals";
  squareChart(container, text, "calibration", (svg, width, height) => {
    const of = shown.length === 1 ? ` of “${data.classes[shown[0]]}”` : "";
    const { across, down } = frame(svg, width, height, shares(`predicted probability${of}`),
      shares("observed share"));
    svg.append(line(across(0), down(0), across(1), down(1), "ideal"));
    for (const k of shown) {
      const found = data.performance.calibration[k];
      found.predicted.forEach((p, i) => svg.append(
        svgElement("line", { x1: across(p), x2: across(p), y1: down(found.low[i]),
          y2: down(found.high[i]), class: `whisker c${k % 8}` }),
        svgElement("circle", { cx: across(p), cy: down(found.observed[i]), r: 4.5,
          class: `dot c${k % 8}` },
        svgElement("title", {}, `${data.classes[k]}: predicted ${percent(p)}, observed `
          + `${percent(found.observed[i])} of ${found.rows[i]} rows`))));
    }
  });
}

function rocChart(container, data) {
  const { falsePositives, truePositives, area } = data.performance.roc;
  squareChart(container, `ROC curve, area ${area.toFixed(3)}`, "roc", (svg, width, height) => {
    const { across, down } = frame(svg, width, height,
      shares(`share of “${data.classes[0]}” called “${data.classes[1]}”`),
      shares(`share of “${data.classes[1]}” found`));
    svg.append(line(across(0), down(0), across(1), down(1), "ideal"));
    const points = falsePositives.map((x, i) => `${across(x).toFixed(1)},${down(truePositives[i]).toFixed(1)}`);
    svg.append(svgElement("polyline", { points: points.join(" "), class: "curve" }));
  });
}

function confusionTable(table, data) {
  const { confusion } = data.performance;
  table.append(
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "true class"),
      ...data.classes.map((name) => element("th", { scope: "col" }, `predicted ${name}`)))),
    element("tbody", {}, ...confusion.map((row, i) => element("tr", {},
      element("th", { scope: "row" }, data.classes[i]),
      ...row.map((count, j) => element("td", { class: i === j ? "hit" : count ? "miss" : "" },
        String(count)))))));
}

function prevalenceTable(table, data) {
  const { prevalence, prevalenceInTraining } = data.performance;
  table.append(
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "class"),
      element("th", { scope: "col" }, "test rows"),
      prevalenceInTraining ? element("th", { scope: "col" }, "training rows") : null)),
    element("tbody", {}, ...data.classes.map((name, k) => element("tr", {},
      element("th", { scope: "row" }, name), element("td", {}, percent(prevalence[k])),
      prevalenceInTraining ? element("td", {}, percent(prevalenceInTraining[k])) : null))));
}

/** Observed against predicted numbers, with predictive intervals. */
function predictedChart(container, data) {
  const { predicted, observed, low, high } = data.performance.points;
  const least = Math.min(...observed, ...low);
  const most = Math.max(...observed, ...high);
  const ticks = roundTicks(least, most);
  const scale = (name) => ({ low: least, high: most, name, ticks });
  const text = "observed and predicted targets, with 90% intervals";
  squareChart(container, text, "predicted", (svg, width, height) => {
    const unit = data.targetUnit && `(${data.targetUnit})`;
    const { across, down } = frame(svg, width, height, scale(withUnit("predicted", unit)),
      scale(withUnit("observed", unit)));
    svg.append(line(across(least), down(least), across(most), down(most), "ideal"));
    predicted.forEach((value, i) => svg.append(svgElement("line", {
      x1: across(value), x2: across(value), y1: down(low[i]), y2: down(high[i]), class: "band" })));
    predicted.forEach((value, i) => svg.append(svgElement("circle", {
      cx: across(value), cy: down(observed[i]), r: 3, class: "dot c0" })));
  });
}

function coverageTable(table, data) {
  table.append(
    element("thead", {}, element("tr", {}, ...["interval", "targets inside", "90% interval of it", "mean width"]
      .map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...data.performance.coverage.map((item) => {
      const off = item.level < item.low || item.level > item.high;
      return element("tr", { class: off ? "bad" : "" },
        element("th", { scope: "row" }, `${Math.round(100 * item.level)}%`),
        element("td", {}, percent(item.share)),
        element("td", {}, `${percent(item.low)} to ${percent(item.high)}`),
        element("td", {}, withUnit(roughly(item.width, 4 * data.ySd), data.targetUnit)));
    })));
}

function performance(data) {
  const found = data.performance;
  byId("facts").append(...found.facts.map((fact) => element("div", { class: "fact" },
    element("dt", {}, fact.name), element("dd", { class: "figure" }, fact.value),
    element("dd", { class: "note" }, fact.note))));
  if (!data.classes) {
    predictedChart(byId("first-chart"), data);
    coverageTable(byId("first-table"), data);
    return;
  }
  const shown = data.classes.length === 2 ? [1] : data.classes.map((_, k) => k);
  calibrationChart(byId("first-chart"), data, shown);
  if (found.roc) rocChart(byId("second-chart"), data);
  else byId("second-figure").hidden = true;
  confusionTable(byId("first-table"), data);
  prevalenceTable(byId("second-table"), data);
  const legend = byId("class-legend");
  legend.hidden = shown.length < 2;
  for (const k of shown) legend.append(element("span", { class: `key c${k % 8}` }), `${data.classes[k]} `);
}
