/** Whether more of a GPU was held at one moment than there is. */

/** A stretch of time in which something held an amount of one GPU. Times are of one clock, in any unit. */
export type Hold = { what: string; gpuId: string; milli: number; from: number; to: number };

const WHOLE_MILLI = 1000;

/** A sentence for each GPU of which too much was held at a time, with the holders of the first such moment. */
export function overcommitted(holds: readonly Hold[]): string[] {
  const byGpu = Map.groupBy(holds, ({ gpuId }) => gpuId);
  return [...byGpu].flatMap(([gpuId, ofGpu]) => {
    const holders = firstExcess(ofGpu);
    if (holders.length === 0) return [];
    const sum = holders.reduce((total, { milli }) => total + milli, 0);
    const names = holders.map(({ what, milli }) => `${what} (${milli})`).join(", ");
    return [`${sum} thousandths of ${gpuId} were held at one time, by ${names}`];
  });
}

/** What is given back at a moment makes room for what begins at that moment. */
function firstExcess(holds: readonly Hold[]): Hold[] {
  const held = new Set<Hold>();
  let sum = 0;
  const changes = holds
    .filter(({ from, to }) => to > from)
    .flatMap((hold) => [
      { at: hold.from, hold, begins: true },
      { at: hold.to, hold, begins: false },
    ])
    .sort((a, b) => a.at - b.at || Number(a.begins) - Number(b.begins));
  for (const { hold, begins } of changes) {
    if (begins) held.add(hold);
    else held.delete(hold);
    sum += begins ? hold.milli : -hold.milli;
    if (sum > WHOLE_MILLI) return [...held];
  }
  return [];
}
