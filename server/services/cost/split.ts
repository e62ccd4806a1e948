/**
 * Splits a whole amount by weights into whole parts that sum to it exactly: each gets its part rounded down, and the
 * rest goes by one to those that lost most (largest remainder). Without any weight there is nothing to split.
 */
export function splitCents(total: number, weights: readonly number[]): number[] {
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  if (all <= 0) return weights.map(() => 0);
  const exact = weights.map((weight) => (total * weight) / all);
  const parts = exact.map(Math.floor);
  let rest = total - parts.reduce((sum, part) => sum + part, 0);
  const byLoss = exact.map((value, index) => ({ index, loss: value - Math.floor(value) }));
  byLoss.sort((a, b) => b.loss - a.loss || a.index - b.index);
  for (const { index } of byLoss) {
    if (rest <= 0) break;
    parts[index] = (parts[index] ?? 0) + 1;
    rest -= 1;
  }
  return parts;
}
