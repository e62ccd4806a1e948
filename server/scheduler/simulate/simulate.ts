/** Replays a trace on an even pool: devices alike, teams alike. `npm run simulate` prints what comes out. */
import { WHOLE } from "../amount.ts";
import { DEFAULT_POLICY } from "../notice.ts";
import type { Device, Quota } from "../types.ts";
import type { Demand } from "./demand.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { play, type Setting } from "./simulation.ts";
import type { Asked } from "./trace.ts";

export type Pool = {
  gpus: number;
  gpusPerServer: number;
  memoryBytes: number;
  /** Of each team's even part of the pool, how much is guaranteed, percent. */
  guaranteedPercent: number;
  /** Price of a GPU-hour in millionths of the currency. */
  microPerGpuHour: number;
};

export type Simulated = Outcome & {
  gpus: number;
  /** What the pool costs over that time, and what one GPU-hour that was held costs; millionths of the currency. */
  costMicro: number;
  costPerHeldHourMicro: number;
};

/** Plays the whole trace on a pool of this size. Who is taken back asks again for the rest of the time. */
export function simulate(trace: readonly Asked[], pool: Pool): Simulated {
  const record = play(trace.map(demandOf), settingOf(trace, pool));
  const outcome = outcomeOf(record, pool.gpus, { from: 0, to: record.endedAt });
  const costMicro = Math.round((pool.gpus * (record.endedAt / 1000) * pool.microPerGpuHour) / 3600);
  const { heldHours } = outcome;
  return {
    ...outcome,
    gpus: pool.gpus,
    costMicro,
    costPerHeldHourMicro: heldHours === 0 ? 0 : Math.round(costMicro / heldHours),
  };
}

function demandOf({ at, team, person, milli, kind, holdSeconds }: Asked, index: number): Demand {
  return {
    ...{ id: `r${String(index).padStart(9, "0")}`, at: at * 1000, createdAt: at * 1000, teamId: team, userId: person },
    ...{ milli, memoryBytes: 0, guaranteedOnly: false, kind, maxDevices: 64 },
    ...{ holdMs: holdSeconds * 1000, lengthMs: holdSeconds * 1000 },
  };
}

function settingOf(trace: readonly Asked[], pool: Pool): Setting {
  const teams = [...new Set(trace.map((asked) => asked.team))].sort();
  const devices = Array.from({ length: pool.gpus }, (_, index): Device => {
    const server = Math.floor(index / pool.gpusPerServer);
    const place = { serverId: `s${server}`, serverName: `gpu-${server}`, linkGroup: "0" };
    return { id: `d${index}`, name: `gpu-${index}`, ...place, memoryBytes: pool.memoryBytes, state: "open" };
  });
  const even = Math.floor((pool.gpus * WHOLE * pool.guaranteedPercent) / 100 / Math.max(1, teams.length));
  const quotas = new Map(
    teams.map((teamId): [string, Quota] => {
      const amounts = { guaranteedMilli: even, limitMilli: pool.gpus * WHOLE };
      return [teamId, { teamId, teamName: teamId, ...amounts }];
    }),
  );
  return { gpuType: "gpu", devices, policy: DEFAULT_POLICY, from: 0, rules: () => ({ quotas }), askAgain: true };
}
