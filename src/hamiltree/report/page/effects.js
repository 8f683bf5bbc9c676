// Which features moved a row: Shapley values, tree by tree, as Python's `explain` has them. A tree's
// prediction is a sum over leaves of a product of factors, one per column on the way; the page knows
// the background's mean product for every set of these columns, and no training row.

/** Shapley values of players whose sets, numbered by bits, have the given worths. */
function shapley(worth, players) {
  const values = new Float64Array(players);
  for (let set = 0; set < worth.length; set += 1) {
    let inside = 0;
    for (let bits = set; bits; bits &= bits - 1) inside += 1;
    for (let player = 0; player < players; player += 1) {
      const has = (set >> player) & 1;
      values[player] += ((has ? 1 : -1) * worth[set]) / (players * choose(players - 1, inside - has));
    }
  }
  return values;
}

function choose(n, k) {
  let found = 1;
  for (let i = 1; i <= k; i += 1) found = (found * (n - k + i)) / i;
  return found;
}

/** Returns explain(row, label): {start, effects: [{place, name, mean, low, high}]}; null if unknown. */
function makeEffects(data, forest) {
  if (!data.effects) return null;
  const { nodeOffset, size, feature, toUnit, goesToNo, leafValue } = forest.parts;
  const means = unpack(data.effects.means);
  const { columns } = data;
  const names = new Map(columns.map((column) => [column.place, column.feature]));
  const scale = data.classes ? 1 : data.ySd;

  return function explain(row, label) {
    const unit = toUnit(row);
    const byTree = [];
    let start = 0;
    let next = 0; // in `means`
    for (const t of data.effects.trees) {
      const own = new Map();
      const first = nodeOffset[t];
      let split = (first - t) / 2;
      let leaf = (first + t) / 2;
      const visit = (i, places, factors) => {
        if (size[first + i] === 1) {
          const value = leafValue(leaf)[data.classes ? label : 0];
          const sets = 2 ** places.length;
          const worth = new Float64Array(sets);
          for (let set = 0; set < sets; set += 1) {
            // The row's factors of the set, and the background's of all others.
            worth[set] = factors.reduce((product, factor, k) => ((set >> k) & 1 ? product * factor : product),
              means[next + sets - 1 - set]);
          }
          shapley(worth, places.length).forEach((share, k) =>
            own.set(places[k], (own.get(places[k]) || 0) + value * share));
          start += value * means[next + sets - 1];
          next += sets;
          leaf += 1;
          return;
        }
        const no = goesToNo(t, split, unit);
        const { place } = columns[feature[split]];
        split += 1;
        for (const [child, share] of [[i + 1, 1 - no], [i + 1 + size[first + i + 1], no]]) {
          const k = places.indexOf(place);
          if (k < 0) visit(child, [...places, place], [...factors, share]);
          else visit(child, places, factors.map((factor, j) => (j === k ? factor * share : factor)));
        }
      };
      visit(0, [], []);
      byTree.push(own);
    }
    const used = [...new Set(byTree.flatMap((own) => [...own.keys()]))].sort((a, b) => a - b);
    const effects = used.map((place) => {
      const values = byTree.map((own) => scale * (own.get(place) || 0));
      const [low, high] = data.levels.map((level) => betweenQuantile(values, level));
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      return { place, name: names.get(place), mean, low, high };
    });
    effects.sort((a, b) => Math.abs(b.mean) - Math.abs(a.mean));
    start /= byTree.length;
    return { start: data.classes ? start : start * data.ySd + data.yMean, effects };
  };
}

/** The effects as a table with bars: what raised the prediction to the right, what lowered it to the left. */
function effectsTable(found, data, label, valueOf) {
  const number = (value) => (data.classes
    ? Number((100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)).toString() : inUnits(value, 4 * data.ySd));
  const signed = (value) => (value < 0 ? `−${number(-value)}` : `+${number(value)}`).replace(/^[+−]0(\.0+)?$/, "0");
  const least = data.classes ? 0.005 : 0.004 * data.ySd;
  const shown = found.effects.filter((effect) => Math.abs(effect.mean) >= least).slice(0, 8);
  const start = data.classes ? probability(found.start) : inTarget(found.start, data);
  const mean = data.targetNamed ? `the mean of ${data.target}` : "the prediction";
  const what = data.classes ? `the probability of ${data.classes[label]}` : mean;
  const caption = `What moved ${what} from ${start}, the mean over training rows`;
  if (!shown.length) return element("p", { class: "note" }, `${caption}: no feature did.`);
  const most = Math.max(...shown.flatMap((effect) =>
    [effect.low, effect.high, effect.mean].map(Math.abs)));
  const on = (value) => 0.5 + (0.5 * value) / most;
  const unit = data.classes ? "points" : data.targetUnit;
  const rows = shown.map((effect) => {
    const kind = effect.mean < 0 ? "mean down" : "mean up";
    const bar = element("div", { class: "meter effect" },
      piece(Math.min(0.5, on(effect.mean)), Math.max(0.5, on(effect.mean)), kind),
      piece(on(effect.low), on(effect.high), "interval"));
    return element("tr", { "data-feature": effect.name },
      element("th", { scope: "row" }, ...breakable(effect.name),
        element("small", {}, ` ${valueOf(effect.place)}`), bar),
      element("td", {}, signed(effect.mean)),
      element("td", {}, `${signed(effect.low)} to ${signed(effect.high)}`));
  });
  return element("table", { class: "effects" }, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "feature and its value"),
      element("th", { scope: "col" }, unit ? `effect (${unit})` : "effect"),
      element("th", { scope: "col" }, `${data.coverage} of trees`))),
    element("tbody", {}, ...rows));
}
