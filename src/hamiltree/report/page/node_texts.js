// Texts of splits and leaves.

const WITHIN = "soft within";

/** The rule of a split on a set of levels. */
function levelsTest(levels, others) {
  if (levels.length === 1) return `is ${levels[0]}`;
  if (others.length === 1) return `is not ${others[0]}`;
  return `in {${levels.join(", ")}}`;
}

/** A threshold as Python's texts have it, with its unit: whole where the column has whole numbers, unless
 * so many of them are near a soft one that its place between them matters. */
function thresholdText(node) {
  const { column, threshold } = node;
  const exact = softMarks(node).some(([label]) => label === WITHIN);
  const whole = column.whole && !exact;
  const number = whole ? String(Math.floor(threshold)) : inUnits(threshold, column.span);
  return withUnit(number, column.unit);
}

/** What a split asks, as {name, test}, with {contrary} where that is more than the other side of a
 * number: a row for which it holds goes to "yes". */
function question(node) {
  if (node.terms) {
    const parts = node.terms.slice(0, 3).map(
      (term) => `${Number(term.weight.toPrecision(3))} × ${term.column.name}`);
    if (node.terms.length > 3) parts.push("…");
    return { name: parts.join(" + "), test: `≤ ${Number(node.threshold.toPrecision(4))}` };
  }
  const { column, threshold } = node;
  if (node.levels) {
    return {
      name: column.name,
      test: levelsTest(node.levels, node.otherLevels),
      contrary: levelsTest(node.otherLevels, node.levels),
    };
  }
  if (node.missingSide && !Number.isFinite(threshold)) {
    const [test, contrary] = node.missingSide === "yes"
      ? ["is missing", "is present"] : ["is present", "is missing"];
    return { name: column.name, test, contrary };
  }
  if (node.missingSide) {
    const imputed = node.missingSide === "imputed" ? ", imputed if missing" : "";
    const or = (side) => (node.missingSide === side ? " or missing" : imputed);
    const ordinal = column.kind === "ordinal";
    const value = ordinal ? column.categories[Math.floor(threshold)] : thresholdText(node);
    const [atMost, above] = ordinal ? ["at most", "above"] : ["≤", ">"];
    return {
      name: column.name, test: `${atMost} ${value}${or("yes")}`, contrary: `${above} ${value}${or("no")}`,
    };
  }
  if (column.kind === "one-hot") return { name: column.source, test: `is not ${column.category}` };
  if (column.kind === "ordinal") {
    const category = column.categories[Math.floor(threshold)];
    return { name: column.name, test: `at most ${category}` };
  }
  return { name: column.name, test: `≤ ${thresholdText(node)}` };
}

/** The same as a statement about one side. */
function statement(node, side) {
  const { name, test, contrary } = question(node);
  if (side === "yes") return `${name} ${test}`;
  if (contrary) return `${name} ${contrary}`;
  if (test.startsWith("is not ")) return `${name} is ${test.slice(7)}`;
  if (test.startsWith("at most ")) return `${name} above ${test.slice(8)}`;
  return `${name} > ${test.slice(2)}`;
}

/** What a soft split does with rows near its threshold, as [label, value] pairs: for whole numbers and
 * categories with an order the share of the rows with a value that go to yes, as in Python's texts. */
function softMarks(node) {
  const { column, h, threshold } = node;
  if (!(h > 0)) return [];
  const within = () => {
    const width = roughly(3 * h, h * 100);
    return [[WITHIN, `about ±${withUnit(width, column ? column.unit : "")}`]];
  };
  if (!column || !(column.whole || column.kind === "ordinal")) return within();
  const near = [];
  const reach = h * Math.log(99); // beyond, 99% of the rows go to one side
  for (let x = Math.ceil(threshold - reach); x <= threshold + reach && near.length < 3; x += 1) {
    if (column.kind !== "ordinal" || column.categories[x] !== undefined) near.push(x);
  }
  if (near.length > 2) return within();
  return near.map((x) => [
    `at ${column.kind === "ordinal" ? column.categories[x] : withUnit(String(x), column.unit)}`,
    `${percent(1 / (1 + Math.exp((x - threshold) / h)))} yes`,
  ]);
}

/** A number of rows; those that soft splits assign are not exactly the ones that satisfy the rules. */
function rowsText(node, noun) {
  return count(node.rows, noun) + (node.assigned ? " assigned" : "");
}

/** Classes of a leaf with what goes with them, the likeliest first. */
function ranked(node, data) {
  return node.probabilities
    .map((value, k) => ({
      k, value, name: data.classes[k], low: node.interval[2 * k], high: node.interval[2 * k + 1],
    }))
    .sort((a, b) => b.value - a.value);
}

/** Lines about a node for the card that appears over it: [label, value] pairs. */
function facts(node, data) {
  const lines = [];
  if (Number.isFinite(node.rows)) lines.push(["training rows", rowsText(node, "row")]);
  if (!node.leaf) {
    if (Number.isFinite(node.certainty)) {
      lines.push(["how common", `${percent(node.certainty)} of the sampled trees have such a split`]);
    }
    lines.push(...softMarks(node));
  }
  if (node.leaf && data.classes) {
    for (const item of ranked(node, data).slice(0, 5)) {
      lines.push([item.name, `${probability(item.value)} (${span(item, probability)})`]);
    }
  } else if (node.leaf) {
    const [low, high] = node.interval;
    const units = (value) => inTarget(value, data);
    const interval = Number.isFinite(low) ? ` (${targetSpan(low, high, data)})` : "";
    lines.push([data.target, units(node.mean) + interval]);
    if (node.sd) lines.push(["noise sd", units(node.sd)]);
  }
  if (node.counts) {
    const counts = node.counts.map((n, k) => `${data.classes[k]} ${roughly(n, 100)}`);
    lines.push(["class counts", counts.slice(0, 6).join(", ") + (counts.length > 6 ? ", …" : "")]);
  }
  return lines;
}

function span(item, format) {
  return `${format(item.low)} to ${format(item.high)}`;
}

/** An interval of the target, its unit once. */
function targetSpan(low, high, data) {
  return `${inUnits(low, 4 * data.ySd)} to ${inTarget(high, data)}`;
}

/** The splits from the root to a node as statements. */
function pathTo(node) {
  const steps = [];
  for (let here = node; here.parent; here = here.parent) {
    steps.unshift(statement(here.parent, here.side));
  }
  return steps;
}

/** A node in one line, for those who hear the page. */
function spoken(node, data) {
  const { name, test } = node.leaf ? {} : question(node);
  const what = node.leaf ? "Leaf" : `Split: ${name} ${test}?`;
  const side = node.side ? `${node.side}: ` : "";
  return `${side}${what} ${facts(node, data).map((line) => line.join(" ")).join("; ")}`;
}
