// Arrays out of the page's data, numbers for people, and the little statistics that predictions need.

const ARRAY_TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array };

/** A packed array {type, data} in base64, little-endian, as a typed array. */
function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
  return new ARRAY_TYPES[packed.type](bytes.buffer);
}

/** A number to a thousandth of the span of its scale, as the Python texts write it. */
function inUnits(value, span) {
  if (!Number.isFinite(value)) return "–";
  if (!(span > 1e-4 && span < 1e7)) return String(Number(value.toPrecision(6)));
  return value.toFixed(Math.max(0, 3 - Math.floor(Math.log10(span))));
}

/** Fewer digits, for drawings: a hundredth of the span. */
function roughly(value, span) {
  if (!Number.isFinite(value)) return "–";
  if (!(span > 1e-4 && span < 1e7)) return String(Number(value.toPrecision(4)));
  const text = value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(span))));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A share as a percentage that never rounds to certainty. */
function percent(share) {
  if (share > 0.995 && share < 1 - 1e-9) return "over 99%";
  if (share > 0 && share < 0.005) return "under 1%";
  return `${Math.round(100 * share)}%`;
}

/** A probability as a percentage: a decimal near the ends, where it matters, and never 0 or 100. */
function probability(value) {
  if (value > 0.9995 && value < 1 - 1e-9) return "over 99.9%";
  if (value > 1e-9 && value < 0.0005) return "under 0.1%";
  const near = value < 0.0995 || value > 0.9005;
  return `${(100 * value).toFixed(near && value > 1e-9 && value < 1 - 1e-9 ? 1 : 0)}%`;
}

/** A number and its unit, on one line. */
function withUnit(text, unit) {
  return unit ? `${text}\u00a0${unit}` : text;
}

/** A number on the scale of the target, in its unit. */
function inTarget(value, data) {
  return withUnit(inUnits(value, 4 * data.ySd), data.targetUnit);
}

/** A quantile between the two nearest values, as NumPy has it by default. */
function betweenQuantile(values, level) {
  const sorted = Float64Array.from(values).sort();
  const place = level * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

function count(value, noun) {
  const shown = Math.abs(value - Math.round(value)) < 0.05 ? Math.round(value) : value.toFixed(1);
  return `${shown} ${noun}${Number(shown) === 1 ? "" : "s"}`;
}

/** First value at which the sum of the equal weights of the sorted values reaches `level`. */
function quantile(values, level) {
  const sorted = Float64Array.from(values).sort();
  const weight = 1 / sorted.length;
  // The same sums in the same order as NumPy's, so that a tie falls on the same side.
  const sums = new Float64Array(sorted.length);
  let sum = 0;
  for (let i = 0; i < sorted.length; i += 1) sums[i] = sum += weight;
  for (let i = 0; i < sorted.length; i += 1) if (sums[i] / sum >= level) return sorted[i];
  return sorted[sorted.length - 1];
}

/** Standard normal distribution function, to about 15 digits. */
function normalCdf(z) {
  const x = Math.abs(z);
  if (x > 38) return z > 0 ? 1 : 0;
  const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  if (x < 3) {
    // 1/2 + density (x + x^3/3 + x^5/15 + ...)
    let term = x;
    let sum = x;
    for (let odd = 3; Math.abs(term) > 1e-17 * sum; odd += 2) sum += term *= (x * x) / odd;
    return z > 0 ? 0.5 + density * sum : 0.5 - density * sum;
  }
  // density / (x + 1/(x + 2/(x + 3/...))), from the far end
  let fraction = x;
  for (let k = 120; k > 0; k -= 1) fraction = x + k / fraction;
  return z > 0 ? 1 - density / fraction : density / fraction;
}

/** Quantile of an equal mixture of normals: its distribution function inverted by bisection. */
function mixtureQuantile(level, means, sds) {
  const widest = Math.max(...sds);
  let low = Math.min(...means) - 40 * widest;
  let high = Math.max(...means) + 40 * widest;
  for (let step = 0; step < 200 && high - low > 1e-13 * widest; step += 1) {
    const middle = 0.5 * (low + high);
    let below = 0;
    for (let t = 0; t < means.length; t += 1) below += normalCdf((middle - means[t]) / sds[t]);
    if (below / means.length < level) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}
