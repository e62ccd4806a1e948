/** What a simulation says of a pool: waiting time, utilisation, fairness, cost. */
import type { Pool, Recorded } from "./simulate.ts";
import type { Asked } from "./trace.ts";

export type Outcome = {
  gpus: number;
  granted: number;
  refused: number;
  reclaimed: number;
  waitP50Seconds: number;
  waitP95Seconds: number;
  waitP99Seconds: number;
  /** Held of what the pool had from the first request to the last end, percent. */
  utilisationPercent: number;
  /** Jain's index of what each team got of what it asked for: 1 is equal, 1/n is all to one. */
  fairness: number;
  /** What the pool costs over that time, and what one GPU-hour that was held costs; millionths of the currency. */
  costMicro: number;
  costPerHeldHourMicro: number;
};

export function outcomeOf(record: Recorded, pool: Pool, trace: readonly Asked[]): Outcome {
  const waits = record.waited.map(({ seconds }) => seconds).sort((a, b) => a - b);
  const at = (part: number) => Math.round(waits[Math.min(waits.length - 1, Math.floor(waits.length * part))] ?? 0);
  const held = [...record.held.values()].reduce((sum, one) => sum + one, 0);
  const seconds = record.endedAt / 1000;
  const capacity = pool.gpus * 1000 * seconds;
  const costMicro = Math.round((pool.gpus * seconds * pool.microPerGpuHour) / 3600);
  const heldHours = held / 1000 / 3600;
  return {
    gpus: pool.gpus,
    granted: record.waited.length,
    refused: record.refused,
    reclaimed: record.reclaimed,
    waitP50Seconds: at(0.5),
    waitP95Seconds: at(0.95),
    waitP99Seconds: at(0.99),
    utilisationPercent: capacity === 0 ? 0 : Math.round((held / capacity) * 1000) / 10,
    fairness: Math.round(jain(servedOf(record, trace)) * 1000) / 1000,
    costMicro,
    costPerHeldHourMicro: heldHours === 0 ? 0 : Math.round(costMicro / heldHours),
  };
}

/** How promptly each team was served: the time that it held, against that time and its waiting together. */
function servedOf(record: Recorded, trace: readonly Asked[]): number[] {
  const teams = [...new Set(trace.map(({ team }) => team))];
  return teams.map((team) => {
    const asked = trace.filter((one) => one.team === team).reduce((sum, one) => sum + one.holdSeconds, 0);
    const waited = record.waited.filter((one) => one.team === team).reduce((sum, one) => sum + one.seconds, 0);
    return asked + waited === 0 ? 1 : asked / (asked + waited);
  });
}

/** Jain, Chiu and Hawe, "A quantitative measure of fairness", 1984. */
export function jain(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  const squares = values.reduce((total, value) => total + value * value, 0);
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares);
}
