// SPDX-License-Identifier: BSD-2-Clause
// Levels of detail of a row of slices: which is the longest of any range, in logarithmic time.

const FACTOR = 16;

/** levels[k][i]: the longest slice of row.first + [i, i + 1) * FACTOR^(k + 1). Made when a row is first drawn. */
function levelsOf(row) {
  if (row.levels) return row.levels;
  const { start, end } = row.all;
  let below = null, n = row.end - row.first;
  row.levels = [];
  while (n > FACTOR) {
    const level = new Uint32Array(Math.ceil(n / FACTOR));
    for (let i = 0; i < n; i++) {
      const slice = below ? below[i] : row.first + i, at = Math.floor(i / FACTOR), best = level[at];
      if (i % FACTOR === 0 || end[slice] - start[slice] > end[best] - start[best]) level[at] = slice;
    }
    row.levels.push(level);
    below = level;
    n = level.length;
  }
  return row.levels;
}

/** The longest slice of [@from, @to), which is not empty. */
export function longest(row, from, to) {
  const { start, end } = row.all, levels = levelsOf(row);
  let best = from;
  const take = (slice) => {
    if (end[slice] - start[slice] > end[best] - start[best]) best = slice;
  };
  let a = from - row.first, b = to - row.first;
  for (let k = -1; a < b; k++) {
    const items = k < 0 ? null : levels[k], last = k + 1 >= levels.length;
    while (a < b && (last || a % FACTOR)) take(items ? items[a++] : row.first + a++);
    while (a < b && b % FACTOR) take(items ? items[--b] : row.first + --b);
    a /= FACTOR;
    b /= FACTOR;
  }
  return best;
}

/** The first slice of [@from, @to) for which @isBeyond, or @to; once it is true it stays so. Close ones are found first. */
export function search(from, to, isBeyond) {
  let step = 1, low = from;
  while (low + step < to && !isBeyond(low + step)) {
    low += step;
    step *= 2;
  }
  let high = Math.min(to, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBeyond(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
