/** For how much of what was used multiprocessors had work: pure. */

/** Amounts of the account, or hours. */
type Known = { effective: number; known: number; estimated: number };
export type EffectiveParts = { effective: number | null; effectiveKnown: number; effectiveEstimated: number };

/** As it is told of something that was used for so long: what is known of none of it is not nothing. */
export function effectiveOf(used: number, { effective, known, estimated }: Known): EffectiveParts {
  return {
    effective: used > 0 && known <= 0 ? null : effective,
    effectiveKnown: known,
    effectiveEstimated: estimated,
  };
}

/** The sum of several. */
export function sumKnown(all: readonly Known[]): Known {
  const sum = { effective: 0, known: 0, estimated: 0 };
  for (const one of all) {
    sum.effective += one.effective;
    sum.known += one.known;
    sum.estimated += one.estimated;
  }
  return sum;
}
