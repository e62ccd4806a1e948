import { compareNames } from "#server/contracts/names.ts";
/** One GPU type's answer: the log, the pool of now and the proposed one, counted alike. Pure; runs in a worker thread. */
import type { WhatIfOutcome, WhatIfType } from "#server/contracts/what-if.ts";
import type { Record } from "#server/scheduler/simulate/demand.ts";
import { averages, countsOf, hoursOf, outcomeOf, type Time, waitsOf } from "#server/scheduler/simulate/outcome.ts";
import { type Bounds, play } from "#server/scheduler/simulate/simulation.ts";
import type { Device } from "#server/scheduler/types.ts";
import { costOf, type Price } from "./cost.ts";
import { demandOf } from "./demand.ts";
import type { Logged } from "./read-log.ts";
import { type Amounts, type Proposal, type RuleRows, settingOf } from "./setting.ts";

/** All that the answer follows from. */
export type ReplayInput = {
  gpuType: string;
  time: Time;
  now: number;
  log: Logged[];
  devices: Device[];
  rules: RuleRows;
  /** GPUs that were in the pool in that time, on average. */
  gpusThen: number;
  price: Price | undefined;
  teamNames: ReadonlyMap<string, string>;
  proposal: Proposal;
};

const BINS = 48;

export function replay(input: ReplayInput, bounds: Bounds = {}): WhatIfType {
  const { gpuType, time, log, devices, rules, proposal } = input;
  const { demands, assumed, logged } = demandOf(log, time, input.now);
  const present: Proposal = { gpus: devices.length, quotas: new Map() };
  const settingFor = (pool: Proposal) => settingOf(gpuType, { devices, rules }, pool, time.from);
  const half = (first: number): Bounds => ({
    ...bounds,
    onProgress: (part) => bounds.onProgress?.(first + part / 2),
  });
  const now = play(demands, settingFor(present), half(0));
  const same = proposal.gpus === devices.length && proposal.quotas.size === 0;
  const proposed = same ? now : play(demands, settingFor(proposal), half(0.5));
  const outcome = (record: Record, gpus: number) => withCost(outcomeOf(record, gpus, time), gpus, input);
  return {
    gpuType,
    logged: { ...outcome(logged, input.gpusThen), gpus: Math.round(input.gpusThen) },
    now: outcome(now, devices.length),
    proposed: outcome(proposed, proposal.gpus),
    teams: teamsOf(now, proposed, input),
    bins: binsOf(now, proposed, time),
    assumed,
  };
}

function withCost(
  outcome: Omit<WhatIfOutcome, "gpus" | "cents" | "centsPerHeldHour">,
  gpus: number,
  input: ReplayInput,
) {
  const cents = costOf(input.price, gpus, input.devices.length, input.time);
  const centsPerHeldHour = cents === null || outcome.heldHours === 0 ? null : cents / outcome.heldHours;
  return { ...outcome, gpus, cents, centsPerHeldHour };
}

function teamsOf(
  now: Record,
  proposed: Record,
  { rules, proposal, time, teamNames }: ReplayInput,
): WhatIfType["teams"] {
  const amounts = new Map(
    rules.quotas.map(({ teamId, guaranteedMilli, limitMilli }) => [teamId, { guaranteedMilli, limitMilli }]),
  );
  const none: Amounts = { guaranteedMilli: 0, limitMilli: 0 };
  const ids = new Set([...amounts.keys(), ...proposal.quotas.keys(), ...now.fates.map(({ teamId }) => teamId)]);
  const of = (record: Record, teamId: string) => {
    const fates = record.fates.filter((fate) => fate.teamId === teamId);
    const held = record.held.filter((span) => span.teamId === teamId);
    return { ...waitsOf(fates), ...countsOf(fates), heldHours: hoursOf(held, time) };
  };
  return [...ids]
    .map((teamId) => {
      const quota = amounts.get(teamId) ?? none;
      return {
        teamId,
        name: teamNames.get(teamId) ?? teamId,
        now: { ...quota, ...of(now, teamId) },
        proposed: { ...quota, ...proposal.quotas.get(teamId), ...of(proposed, teamId) },
      };
    })
    .sort((a, b) => b.now.heldHours - a.now.heldHours || compareNames(a.name, b.name));
}

function binsOf(now: Record, proposed: Record, time: Time): WhatIfType["bins"] {
  const width = (time.to - time.from) / BINS;
  const series = [now.held, now.fates, proposed.held, proposed.fates].map((spans) => averages(spans, time, BINS));
  const at = (index: number, bin: number) => series[index]?.[bin] ?? 0;
  return Array.from({ length: BINS }, (_, bin) => ({
    from: new Date(time.from + bin * width).toISOString(),
    to: new Date(time.from + (bin + 1) * width).toISOString(),
    now: { held: at(0, bin), waiting: at(1, bin) },
    proposed: { held: at(2, bin), waiting: at(3, bin) },
  }));
}
