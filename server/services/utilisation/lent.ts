/** What teams lent: pure. */

export type TeamTime = {
  teamId: string;
  gpuType: string;
  /** Today's guarantee over the whole span, GPU-hours. */
  guaranteed: number;
  held: number;
  /** Above its guarantee when it was granted. */
  borrowed: number;
};

/**
 * What others borrowed of each team, GPU-hours: their borrowing of a type is split over all teams by what these left of
 * their guarantee, and nobody lends more than that. The rest came from what is guaranteed to nobody.
 */
export function lentBy(times: readonly TeamTime[]): Map<string, number> {
  const lent = new Map<string, number>();
  for (const gpuType of new Set(times.map((one) => one.gpuType))) {
    const ofType = times.filter((one) => one.gpuType === gpuType);
    const left = (one: TeamTime) => Math.max(0, one.guaranteed - (one.held - one.borrowed));
    const allLeft = ofType.reduce((sum, one) => sum + left(one), 0);
    const allBorrowed = ofType.reduce((sum, one) => sum + one.borrowed, 0);
    if (allLeft === 0) continue;
    for (const one of ofType) {
      const byOthers = allBorrowed - one.borrowed;
      const given = left(one) * Math.min(1, byOthers / allLeft);
      lent.set(one.teamId, (lent.get(one.teamId) ?? 0) + given);
    }
  }
  return lent;
}
