// Missing numbers from the other cells of a row, as in Python: the conditional mean of a normal
// distribution of the columns and of indicators of levels.

const IMPUTED_PARTS = 2 ** 20;

/** Solve a symmetric, positive definite system by elimination; both arguments are overwritten. */
function solvePositive(matrix, right) {
  const n = right.length;
  for (let k = 0; k < n; k += 1) {
    for (let i = k + 1; i < n; i += 1) {
      const factor = matrix[i][k] / matrix[k][k];
      for (let j = k; j < n; j += 1) matrix[i][j] -= factor * matrix[k][j];
      right[i] -= factor * right[k];
    }
  }
  for (let k = n - 1; k >= 0; k -= 1) {
    for (let j = k + 1; j < n; j += 1) right[k] -= matrix[k][j] * right[j];
    right[k] /= matrix[k][k];
  }
  return right;
}

/** Returns impute(unit): a row on the trees' scale, its missing numbers filled in. */
function makeImputation({ place, code, mean, covariance }) {
  return function impute(unit) {
    const value = place.map((column, k) => {
      if (code[k] < 0 || Number.isNaN(unit[column])) return unit[column];
      return unit[column] === code[k] ? 1 : 0;
    });
    const known = value.flatMap((cell, k) => (Number.isNaN(cell) ? [] : [k]));
    const filled = Array.from(unit);
    if (known.length === value.length) return filled;
    const coefficient = solvePositive(
      known.map((j) => known.map((k) => covariance[j][k])),
      known.map((k) => value[k] - mean[k]),
    );
    value.forEach((cell, k) => {
      if (!Number.isNaN(cell) || code[k] >= 0) return;
      const guess = known.reduce((sum, j, i) => sum + covariance[k][j] * coefficient[i], mean[k]);
      filled[place[k]] = Math.round(Math.min(Math.max(guess, 0), 1) * IMPUTED_PARTS) / IMPUTED_PARTS;
    });
    return filled;
  };
}
