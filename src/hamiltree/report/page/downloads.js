// Files that the page writes: drawings as SVG, rows with their predictions as CSV.

/** Hands a text to the browser as a file. */
function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** A button that saves the drawing inside a place, whatever is drawn there by then. */
function saveButton(place, name) {
  return element("button", {
    type: "button", class: "save",
    onclick: () => download(`${name}.svg`, "image/svg+xml", svgText(place.querySelector("svg"))),
  }, "Save as SVG");
}

const WRITTEN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight",
  "text-anchor", "paint-order"];

/**
 * A drawing as a file of its own: the page's style written out as attributes, in its light colours,
 * because other programs know neither its style sheet nor its variables.
 */
function svgText(drawing) {
  document.documentElement.classList.add("light");
  const copy = drawing.cloneNode(true);
  const from = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of WRITTEN) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none" && value !== "normal") {
        node.setAttribute(name, ["fill", "stroke"].includes(name) ? plainColour(value) : value);
      } else if (name === "fill") node.setAttribute(name, "none");
    }
    for (const name of [...node.getAttributeNames()]) {
      if (/^(aria-|data-|class|style|role|tabindex)/.test(name) && !(node === copy && name === "aria-label")) {
        node.removeAttribute(name);
      }
    }
  });
  document.documentElement.classList.remove("light");
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("font-family", "system-ui, 'DejaVu Sans', Arial, sans-serif");
  const [, , width, height] = copy.getAttribute("viewBox").split(" ");
  copy.prepend(svgElement("rect", { width, height, fill: "#ffffff" }));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

const palette = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/** Any colour as red, green and blue; mixtures are computed by the browser. */
function plainColour(value) {
  if (/^(#|rgb\()/.test(value)) return value;
  palette.clearRect(0, 0, 1, 1);
  palette.fillStyle = value;
  palette.fillRect(0, 0, 1, 1);
  const [red, green, blue] = palette.getImageData(0, 0, 1, 1).data;
  return `rgb(${red}, ${green}, ${blue})`;
}

/** Cells as lines of a CSV, quoted where needed. */
function csvText(rows) {
  const cell = (value) => {
    const text = value === null || Number.isNaN(value) ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Rows under the table's own names, with predictions named as `hamiltree predict` names them. */
function rowsCsv(rows, data) {
  const header = data.inputs.map((input) => input.column);
  if (data.classes) {
    header.push("prediction", ...data.classValues.flatMap((name) =>
      [`probability_${name}`, `low_${name}`, `high_${name}`]));
  } else header.push("prediction", "sd", "low", "high");
  const own = new Map(data.columns.map((column) => [column.place, column.source]));
  const column = (name) => data.inputs.find((input) => input.name === name).column;
  const places = rows[0].moved ? rows[0].moved.effects.map((effect) => effect.place) : [];
  header.push(...places.map((place) => `effect_${column(own.get(place))}`));
  const lines = rows.map(({ values, found, moved }) => {
    const cells = data.inputs.map((input, i) => (input.kind === "number" ? values[i]
      : (input.values[input.categories.indexOf(values[i])] ?? "").replace(/^\(missing\)$/, "")));
    if (data.classes) {
      const best = found.mean.indexOf(Math.max(...found.mean));
      cells.push(data.classValues[best], ...data.classes.flatMap((_, k) =>
        [found.mean[k], ...found.intervals[k]]));
    } else cells.push(found.mean, found.sd, ...found.interval);
    cells.push(...places.map((place) => moved.effects.find((effect) => effect.place === place)?.mean ?? 0));
    return cells;
  });
  return csvText([header, ...lines]);
}
