/**
 * The ledger of a device: every moment of it is leased (used, or held idle), idle, draining or lost, and the parts sum
 * to wall time exactly. Amounts are thousandths of a GPU times milliseconds, so nothing is rounded.
 */
import { WHOLE } from "./amount.ts";

/** A stretch of time; an open end lasts to the end of what is asked about. */
export type Stretch = { from: number; to?: number };
export type LeasedStretch = Stretch & { milli: number; teamId: string; userId: string; usedMs?: number };
export type StateStretch = Stretch & { state: "open" | "draining" | "lost" };

export type DeviceLedger = {
  wall: number;
  /** Leased, and the GPU worked for the lease. */
  used: number;
  /** Leased, and nothing ran. */
  heldIdle: number;
  idle: number;
  draining: number;
  lost: number;
};

/**
 * What became of one device between two times. What is leased counts as leased also while the device drains or is
 * lost: somebody holds it. Time before the device was known belongs to nobody and is not counted.
 */
export function deviceLedger(
  states: readonly StateStretch[],
  leased: readonly LeasedStretch[],
  from: number,
  to: number,
): DeviceLedger {
  const cuts = cutsOf([...states, ...leased], from, to);
  const ledger: DeviceLedger = { wall: 0, used: 0, heldIdle: 0, idle: 0, draining: 0, lost: 0 };
  for (let index = 0; index + 1 < cuts.length; index++) {
    const [start, end] = [cuts[index] as number, cuts[index + 1] as number];
    const state = states.find((one) => covers(one, start, to));
    if (state === undefined) continue;
    const ms = end - start;
    const held = leased.filter((one) => covers(one, start, to)).reduce((sum, one) => sum + one.milli, 0);
    ledger.wall += WHOLE * ms;
    ledger.heldIdle += held * ms;
    ledger[state.state === "open" ? "idle" : state.state] += (WHOLE - held) * ms;
  }
  // Use is measured for a lease as a whole: it moves from held idle to used, at most as much as was held.
  const used = Math.min(
    ledger.heldIdle,
    leased.reduce((sum, one) => sum + Math.min(one.usedMs ?? 0, lengthIn(one, from, to)) * one.milli, 0),
  );
  return { ...ledger, used, heldIdle: ledger.heldIdle - used };
}

/** Sums ledgers, for a type or the pool. */
export function sumLedgers(ledgers: readonly DeviceLedger[]): DeviceLedger {
  const total: DeviceLedger = { wall: 0, used: 0, heldIdle: 0, idle: 0, draining: 0, lost: 0 };
  for (const one of ledgers) {
    for (const key of Object.keys(total) as (keyof DeviceLedger)[]) total[key] += one[key];
  }
  return total;
}

/** Whether the parts sum to wall time. */
export function addsUp({ wall, used, heldIdle, idle, draining, lost }: DeviceLedger): boolean {
  return used + heldIdle + idle + draining + lost === wall;
}

const covers = (one: Stretch, at: number, to: number): boolean => one.from <= at && at < (one.to ?? to);

function lengthIn(one: Stretch, from: number, to: number): number {
  return Math.max(0, Math.min(one.to ?? to, to) - Math.max(one.from, from));
}

function cutsOf(stretches: readonly Stretch[], from: number, to: number): number[] {
  const edges = stretches.flatMap((one) => [one.from, one.to ?? to]).filter((at) => at > from && at < to);
  return [...new Set([from, ...edges, to])].sort((a, b) => a - b);
}
