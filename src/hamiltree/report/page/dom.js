// Elements and texts. Every text goes in as text, never as markup, whatever the data hold.

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svgElement(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const byId = (id) => document.getElementById(id);
const ruler = document.createElement("canvas").getContext("2d");

/** Width of a text in pixels, in the page's own font. */
function textWidth(text, size, weight = 400) {
  ruler.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

/** A text in at most `most` lines of at most `width` pixels, cut with an ellipsis. */
function wrapped(text, width, size, most, weight) {
  const fits = (line) => textWidth(line, size, weight) <= width;
  const lines = [];
  let line = "";
  const words = text.split(/(?<=[\s_\-/=,])/).flatMap((word) => broken(word, fits));
  for (const word of words) {
    if (line && !fits((line + word).trimEnd())) {
      lines.push(line);
      line = "";
    }
    line += word;
  }
  lines.push(line);
  if (lines.length > most) {
    let last = lines.slice(most - 1).join("");
    while (last && !fits(`${last}…`)) last = last.slice(0, -1);
    lines.splice(most - 1, lines.length, `${last}…`);
  }
  return lines.map((one) => one.trimEnd());
}

/** A word in pieces that fit. */
function broken(word, fits) {
  const pieces = [];
  let piece = "";
  for (const character of word) {
    if (piece && !fits(piece + character)) {
      pieces.push(piece);
      piece = "";
    }
    piece += character;
  }
  return [...pieces, piece];
}

/** A name that may go on in the next line after its underscores and dots. */
function breakable(text) {
  return text.split(/(?<=[_./])/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}
