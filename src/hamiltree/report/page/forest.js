// The trees of the page and what they say about a row. Tree t has its nodes in preorder from
// nodeOffset[t] on, its splits from (nodeOffset[t] - t) / 2 and its leaves from
// (nodeOffset[t] + t) / 2 on, as in Python's Draws. A row goes to "no" with probability
// 1 / (1 + exp(-(x - threshold) / h)), or, where h is 0, if x > threshold. A category goes to "no" if
// the bit of its level is set, and so does a missing cell (NaN), by bit 0, of numbers that had some in
// training, or, by bit 1, counts as the number imputed for it; other missing cells go both ways.

const FAR = 1e30;

function makeForest(data) {
  const packed = data.forest;
  const forest = {};
  for (const [name, array] of Object.entries(packed.arrays)) forest[name] = unpack(array);
  const { nodeOffset, size, feature, threshold, weights, leaf } = forest;
  const classes = data.classes;
  const outputs = classes ? classes.length : packed.leafWidth;
  const oblique = packed.ruleColumns > 0;
  const columns = data.columns;

  const impute = data.imputation ? makeImputation(data.imputation) : null;

  /** A row in the user's units, one value a used column, on the trees' own scale; `imputed` is the
   * same without missing numbers, where some splits impute these. */
  function toUnit(row) {
    const unit = columns.map((column, j) => {
      const cell = Math.min(Math.max((row[j] - column.minimum) / column.span, -FAR), FAR);
      return Number.isNaN(cell) && column.fill !== null ? column.fill : cell;
    });
    unit.imputed = impute ? impute(unit) : unit;
    return unit;
  }

  /** Softness of tree t on a used column; there is one row of it, or one per tree. */
  function softness(t, column) {
    const tree = forest.h.length > packed.softnesses ? t : 0;
    return forest.h[tree * packed.softnesses + column];
  }

  function hasBit(split, code) {
    const bits = code < 32 ? forest.levelsLow[split] : forest.levelsHigh[split];
    return Math.floor(bits / 2 ** (code % 32)) % 2;
  }

  function goesToNo(t, split, unit) {
    let x = 0;
    let cells = unit;
    if (!oblique) {
      const { labels, missing } = columns[feature[split]];
      const cell = unit[feature[split]];
      if (Number.isNaN(cell)) {
        if (!missing) return 0.5;
        if (!hasBit(split, 1)) return hasBit(split, 0);
        cells = unit.imputed;
      } else if (labels) {
        return hasBit(split, cell);
      }
    }
    const h = softness(t, oblique ? 0 : feature[split]);
    if (oblique) {
      for (let j = 0; j < unit.length; j += 1) x += weights[split * unit.length + j] * unit[j];
    } else {
      x = cells[feature[split]];
    }
    const distance = x - threshold[split];
    if (h === 0) return distance > 0 ? 1 : 0;
    return 1 / (1 + Math.exp(Math.min(Math.max(-distance / h, -40), 40)));
  }

  /** Probability of reaching each node of tree t, in preorder. */
  function reach(t, unit) {
    const first = nodeOffset[t];
    const n = nodeOffset[t + 1] - first;
    const reached = new Float64Array(n);
    reached[0] = 1;
    let split = (first - t) / 2;
    for (let i = 0; i < n; i += 1) {
      if (size[first + i] === 1) continue;
      const toNo = reached[i] * goesToNo(t, split, unit);
      reached[i + 1] = reached[i] - toNo;
      reached[i + 1 + size[first + i + 1]] = toNo;
      split += 1;
    }
    return reached;
  }

  /** What a leaf predicts: class probabilities, or its mean (and noise sd) in the model's units. */
  function leafValue(number) {
    const own = leaf.subarray(number * outputs, (number + 1) * outputs);
    if (!classes) return own;
    let total = 0;
    for (let k = 0; k < outputs; k += 1) total += own[k] + packed.classPrior[k];
    return Array.from(own, (n, k) => (n + packed.classPrior[k]) / total);
  }

  /** Sum over the leaves of tree t of the probability of reaching them times valueOf(leaf). */
  function average(t, unit, valueOf) {
    const reached = reach(t, unit);
    const first = nodeOffset[t];
    const sum = new Float64Array(outputs);
    let number = (first + t) / 2;
    for (let i = 0; i < reached.length; i += 1) {
      if (size[first + i] !== 1) continue;
      const value = valueOf(number);
      for (let k = 0; k < outputs; k += 1) sum[k] += reached[i] * value[k];
      number += 1;
    }
    return sum;
  }

  const drawn = (number) => forest.sampledLeaf.subarray(number * outputs, (number + 1) * outputs);
  const toUser = (value) => value * data.ySd + data.yMean;

  /** The prediction of the included draws together, with the interval that Python gives for them. */
  function predict(row) {
    const unit = toUnit(row);
    const draws = Array.from({ length: packed.nDraws }, (_, t) => average(t, unit, leafValue));
    if (classes) {
      const mean = classes.map((_, k) => draws.reduce((sum, draw) => sum + draw[k], 0));
      const total = mean.reduce((sum, part) => sum + part, 0);
      const sampled = draws.map((_, t) => average(t, unit, drawn));
      return {
        draws,
        mean: mean.map((part) => part / total),
        intervals: classes.map((_, k) =>
          data.levels.map((level) => quantile(sampled.map((draw) => draw[k]), level))),
      };
    }
    const means = draws.map((draw) => draw[0]);
    const sds = outputs > 1 ? draws.map((draw) => draw[1]) : forest.sigma.subarray(0, packed.nDraws);
    const n = packed.nDraws;
    const mean = means.reduce((sum, value) => sum + value, 0) / n;
    const spread = means.reduce((sum, value) => sum + (value - mean) ** 2, 0) / n;
    const noise = outputs > 1
      ? draws.map((_, t) => average(t, unit, (leafNumber) => leafValue(leafNumber).map((v) => v * v)))
        .reduce((sum, square) => sum + square[1], 0) / n
      : sds.reduce((sum, sd) => sum + sd * sd, 0) / n;
    return {
      draws: means.map(toUser),
      mean: toUser(mean),
      sd: Math.sqrt(spread + noise) * data.ySd,
      interval: data.levels.map((level) => toUser(mixtureQuantile(level, means, Array.from(sds)))),
    };
  }

  /** Tree t as nested nodes in the user's units, ready to be drawn. */
  function nodes(t) {
    const first = nodeOffset[t];
    let split = (first - t) / 2;
    let number = (first + t) / 2;
    const all = [];
    function visit(i, parent, side) {
      const node = { index: i, parent, side, rows: forest.rows[first + i], depth: 0 };
      node.depth = parent ? parent.depth + 1 : 0;
      all.push(node);
      if (size[first + i] === 1) {
        const value = leafValue(number);
        node.leaf = true;
        node.interval = forest.interval.subarray(
          2 * (classes ? outputs : 1) * number, 2 * (classes ? outputs : 1) * (number + 1));
        if (classes) {
          node.probabilities = value;
          node.counts = Array.from(leaf.subarray(number * outputs, (number + 1) * outputs));
        } else {
          node.mean = toUser(value[0]);
          if (outputs > 1) node.sd = value[1] * data.ySd;
        }
        number += 1;
        return node;
      }
      describeSplit(node, t, split);
      split += 1;
      node.yes = visit(i + 1, node, "yes");
      node.no = visit(i + 1 + size[first + i + 1], node, "no");
      if (classes) node.counts = node.yes.counts.map((n, k) => n + node.no.counts[k]);
      return node;
    }
    visit(0, null, "");
    const assigned = all.some((node) => !node.leaf && softMarks(node).length > 0);
    all.forEach((node) => { node.assigned = assigned && node.parent !== null; });
    return all;
  }

  function describeSplit(node, t, split) {
    node.certainty = forest.certainty[split];
    if (!oblique) {
      const column = columns[feature[split]];
      node.column = column;
      node.threshold = column.minimum + threshold[split] * column.span;
      node.h = softness(t, feature[split]) * column.span;
      if (column.labels) {
        node.h = 0;
        node.levels = column.labels.filter((_, code) => !hasBit(split, code));
        node.otherLevels = column.labels.filter((_, code) => hasBit(split, code));
      } else if (column.missing) {
        node.missingSide = hasBit(split, 1) ? "imputed" : ["yes", "no"][hasBit(split, 0)];
        if (!Number.isFinite(node.threshold)) node.h = 0;
      }
      return;
    }
    // sum_j w_j (x_j - minimum_j) / span_j <= tau, with the x_j freed of their shift and scale
    const own = weights.subarray(split * columns.length, (split + 1) * columns.length);
    node.terms = columns.map((column, j) => ({ column, share: own[j], weight: own[j] / column.span }));
    node.threshold = node.terms.reduce(
      (sum, term) => sum + term.weight * term.column.minimum, threshold[split]);
    node.terms.sort((a, b) => b.share - a.share);
    node.h = softness(t, 0);
  }

  /** What missing cells of a row are imputed as, in the user's units, by column; of the others nothing. */
  function imputed(row) {
    const filled = toUnit(row).imputed;
    const missing = columns.flatMap((column, j) => (column.missing && Number.isNaN(row[j]) ? [j] : []));
    return new Map(missing.map((j) => [columns[j], columns[j].minimum + filled[j] * columns[j].span]));
  }

  return {
    predict, imputed, nodes, reach: (t, row) => reach(t, toUnit(row)), nDraws: packed.nDraws,
    parts: { nodeOffset, size, feature, toUnit, goesToNo, leafValue },
  };
}
