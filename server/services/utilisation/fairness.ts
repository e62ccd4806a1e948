/** How evenly contended compute was shared: pure. */

type Share = { teamId: string; promised: number; delivered: number };

/**
 * Jain's index of what teams got of what they were promised while others wanted the device too (Jain, Chiu and Hawe,
 * 1984): 1 where each got the same part, 1/n where one of n got all. Nothing to compare with fewer than two teams: null.
 */
export function fairnessOf(times: readonly Share[]): number | null {
  const teams = Map.groupBy(
    times.filter((time) => time.promised > 0),
    (time) => time.teamId,
  );
  if (teams.size < 2) return null;
  const total = (of: readonly Share[], key: "promised" | "delivered") => of.reduce((sum, time) => sum + time[key], 0);
  const parts = [...teams.values()].map((own) => total(own, "delivered") / total(own, "promised"));
  const sum = parts.reduce((all, part) => all + part, 0);
  const squares = parts.reduce((all, part) => all + part * part, 0);
  return squares === 0 ? 1 : Math.min(1, (sum * sum) / (parts.length * squares));
}
