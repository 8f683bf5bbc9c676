// The plots of the page, each drawn to the width there is, and again when that changes.

/** Calls draw(svg, width) now and whenever the width of the container changes. */
function chart(container, height, label, draw, file = "") {
  let width = 0;
  if (file) container.after(saveButton(container, file));
  function redraw() {
    if (container.clientWidth === width || !container.clientWidth) return;
    width = container.clientWidth;
    const svg = svgElement("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
      "aria-label": label,
    });
    draw(svg, width);
    container.replaceChildren(svg);
  }
  redraw();
  new ResizeObserver(redraw).observe(container);
}

function label(x, y, text, attributes = {}) {
  return svgElement("text", { x, y, ...attributes }, text);
}

function line(x1, y1, x2, y2, kind) {
  return svgElement("line", { x1, y1, x2, y2, class: kind });
}

/** How many trees use each feature: a bar for all of them, a dot for each chain. */
function featureBars(container, data) {
  const shown = data.features.slice(0, 15);
  const row = 30;
  const longest = Math.max(...shown.map((feature) => textWidth(feature.name, 13)));
  chart(container, shown.length * row + 24, "share of the trees that use each feature",
    (svg, width) => {
      const left = Math.min(longest + 12, 0.42 * width);
      const scale = width - left - 76;
      shown.forEach((feature, i) => {
        const y = i * row + 4;
        const lines = wrapped(feature.name, left - 10, 13, 2);
        lines.forEach((text, k) => svg.append(label(
          left - 8, y + 23 - 7 * lines.length + 14 * k, text, { "text-anchor": "end", class: "name" })));
        svg.append(
          svgElement("rect", {
            x: left, y: y + 4, width: Math.max(1, feature.share * scale), height: 15, rx: 2,
            class: "amount" }),
          label(left + scale + 8, y + 16, percent(feature.share), { class: "value" }),
        );
        if (feature.byChain.length > 1) {
          feature.byChain.forEach((share, chain) => svg.append(svgElement("circle", {
            cx: left + share * scale, cy: y + 11.5, r: 3.2, class: `dot c${chain % 8}` })));
        }
      });
      const bottom = shown.length * row + 6;
      svg.append(line(left, bottom, left + scale, bottom, "axis"));
      for (const tick of [0, 0.5, 1]) {
        svg.append(label(left + tick * scale, bottom + 14, `${100 * tick}%`, {
          "text-anchor": "middle", class: "tick" }));
      }
    }, "features");
}

/** Where the trees split a feature: a histogram over its training range. */
function thresholdPlots(container, data) {
  for (const plot of data.thresholds) {
    const box = element("div", { class: "plot" });
    const figure = element("figure", { class: "small" }, element("figcaption", {}, plot.name), box);
    container.append(figure);
    const most = Math.max(...plot.splits);
    chart(box, 96, `thresholds of ${plot.name}`, (svg, width) => {
      const bar = (width - 2) / plot.splits.length;
      plot.splits.forEach((splits, i) => {
        const height = most > 0 ? (64 * splits) / most : 0;
        svg.append(svgElement("rect", {
          x: 1 + i * bar, y: 70 - height, width: Math.max(bar - 0.6, 0.5), height, class: "amount" }));
      });
      svg.append(
        line(1, 70, width - 1, 70, "axis"),
        label(1, 86, plot.low, { class: "tick" }),
        label(width - 1, 86, plot.high, { class: "tick", "text-anchor": "end" }),
      );
    });
  }
}

/** Numbers of leaves: a bar for all draws, a dot for each chain. */
function leavesChart(container, data) {
  const { first, shares, byChain } = data.leaves;
  const most = Math.max(...shares, ...byChain.flat());
  chart(container, 180, "posterior of the number of leaves", (svg, width) => {
    const step = Math.min(56, (width - 40) / shares.length);
    shares.forEach((share, i) => {
      const x = 36 + (i + 0.5) * step;
      const height = (130 * share) / most;
      svg.append(
        svgElement("rect", {
          x: x - 0.38 * step, y: 145 - height, width: 0.76 * step, height, class: "amount", rx: 2 }),
        step > 16 || i % 2 === 0
          ? label(x, 162, first + i, { "text-anchor": "middle", class: "tick" }) : "");
      if (byChain.length < 2) return;
      byChain.forEach((chain, c) => svg.append(svgElement("circle", {
        cx: x + (0.5 * step * (c - (byChain.length - 1) / 2)) / byChain.length,
        cy: 145 - (130 * chain[i]) / most, r: 3, class: `dot c${c % 8}` })));
    });
    svg.append(line(36, 145, 36 + step * shares.length, 145, "axis"),
      label(32, 20, percent(most), { "text-anchor": "end", class: "tick" }),
      label(32, 148, "0%", { "text-anchor": "end", class: "tick" }),
      label(36, 177, "leaves", { class: "tick" }));
  }, "leaves");
}

/** Log posterior, draw by draw, one line per chain, over each other. */
function traceChart(container, data) {
  const { chains, low, high, nDraws } = data.trace;
  chart(container, 180, "trace of the log posterior, one line per chain", (svg, width) => {
    const y = (value) => 150 - (138 * (value - low)) / (high - low || 1);
    chains.forEach((values, chain) => {
      const points = values.map((value, i) =>
        `${(52 + ((width - 56) * i) / Math.max(1, values.length - 1)).toFixed(1)},${y(value).toFixed(1)}`);
      svg.append(svgElement("polyline", { points: points.join(" "), class: `trace c${chain % 8}` }));
    });
    svg.append(line(52, 152, width - 4, 152, "axis"),
      label(48, 18, roughly(high, high - low), { "text-anchor": "end", class: "tick" }),
      label(48, 150, roughly(low, high - low), { "text-anchor": "end", class: "tick" }),
      label(52, 168, "draw 1", { class: "tick" }),
      label(width - 4, 168, nDraws, { "text-anchor": "end", class: "tick" }));
  }, "trace");
}

/** The included draws one after the other; returns a function that moves the mark. */
function drawStrip(container, data, choose) {
  const values = data.drawn.logPosterior;
  const low = Math.min(...values);
  const high = Math.max(...values);
  let chosen = 0;
  let move = () => {};
  chart(container, 84, "log posterior of the included draws", (svg, width) => {
    const x = (i) => 4 + ((width - 8) * i) / Math.max(1, values.length - 1);
    const y = (value) => 74 - (62 * (value - low)) / (high - low || 1);
    values.forEach((value, i) => svg.append(svgElement("circle", {
      cx: x(i).toFixed(1), cy: y(value).toFixed(1), r: 1.8, class: `dot c${data.drawn.chain[i] % 8}` })));
    const mark = svgElement("g", { class: "mark" }, line(0, 2, 0, 82, ""),
      svgElement("circle", { r: 5 }));
    svg.append(mark);
    move = () => {
      mark.setAttribute("transform", `translate(${x(chosen)} 0)`);
      mark.lastChild.setAttribute("cy", y(values[chosen]));
    };
    svg.addEventListener("pointerdown", (event) => {
      const share = (event.clientX - svg.getBoundingClientRect().left - 4) / (width - 8);
      choose(Math.round(Math.min(1, Math.max(0, share)) * (values.length - 1)));
    });
    move();
  });
  return (i) => { chosen = i; move(); };
}
