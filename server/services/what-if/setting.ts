/** The pool that is tried: as many devices, these quotas, the rest as it is now. Pure. */
import { edgesAfter, kindsAt, type Window } from "#server/scheduler/calendar.ts";
import { DEFAULT_POLICY } from "#server/scheduler/notice.ts";
import type { Rules, Setting } from "#server/scheduler/simulate/simulation.ts";
import type { Device, Quota } from "#server/scheduler/types.ts";
import { reservationFrom } from "#server/services/lease/world.ts";
import { quotasFrom } from "#server/services/lease/world-quotas.ts";
import type { WorldRows } from "#server/services/lease/world-rows.ts";

/** Quotas and calendars of a type; reservations and approved requests for more that overlapped the time. */
export type RuleRows = Pick<WorldRows, "timeZone" | "quotas" | "windows" | "additions" | "reservations" | "kinds">;
export type Amounts = { guaranteedMilli: number; limitMilli: number };
export type Proposal = { gpus: number; quotas: ReadonlyMap<string, Amounts> };

/** Where nothing is known of the type's cards. */
const SOME_MEMORY = 80 * 1024 ** 3;

export function settingOf(
  gpuType: string,
  present: { devices: readonly Device[]; rules: RuleRows },
  proposal: Proposal,
  from: number,
): Setting {
  const edges = edgesOf(present.rules);
  return {
    gpuType,
    devices: devicesOf(present.devices, proposal.gpus),
    policy: DEFAULT_POLICY,
    from,
    rules: (at) => rulesAt(present.rules, proposal.quotas, at),
    rulesChangeAt: (at) => changeAfter(edges, at),
    askAgain: false,
  };
}

/** The first of those that are there, and further ones like them on servers of the same size. */
export function devicesOf(present: readonly Device[], count: number): Device[] {
  const sorted = [...present].sort((a, b) => (a.serverName + a.id < b.serverName + b.id ? -1 : 1));
  const open = sorted.slice(0, count).map((device): Device => ({ ...device, state: "open" }));
  const servers = [...Map.groupBy(sorted, ({ serverId }) => serverId).values()];
  const perServer = Math.max(1, ...servers.map((group) => group.length));
  const [like] = sorted;
  for (let added = 0; open.length < count; added++) {
    const server = Math.floor(added / perServer);
    const place = { serverId: `new-${server}`, serverName: `new-${server}` };
    const name = { id: `new-${added}`, name: `new-${added}`, linkGroup: "0", state: "open" as const };
    open.push({ memoryBytes: SOME_MEMORY, ...like, ...place, ...name });
  }
  return open;
}

/** Without budgets, which would depend on what was held before the time. */
function rulesAt(rows: RuleRows, proposed: Proposal["quotas"], at: number): Rules {
  const known = rows.quotas.map((row) => ({
    ...row,
    ...proposed.get(row.teamId),
    budgetMilliHours: null,
    usage: null,
  }));
  const added = [...proposed].filter(([teamId]) => !rows.quotas.some((row) => row.teamId === teamId));
  const quotas = quotasFrom({ ...rows, quotas: known }, at);
  for (const [teamId, amounts] of added) quotas.set(teamId, { teamId, teamName: teamId, ...amounts } satisfies Quota);
  const reservations = rows.reservations.map(reservationFrom);
  return { quotas, reservations, open: kindsAt(rows.timeZone, rows.kinds, at) };
}

type Edges = { zone: string; windows: Window[]; instants: number[] };

/** When rules change: where windows of every week begin and end, and single instants. */
function edgesOf({ timeZone, windows, kinds, additions, reservations }: RuleRows): Edges {
  const instants = [...additions, ...reservations].flatMap(({ startsAt, endsAt }) => [
    Date.parse(startsAt),
    Date.parse(endsAt),
  ]);
  return { zone: timeZone, windows: [...windows, ...kinds], instants: instants.sort((a, b) => a - b) };
}

function changeAfter({ zone, windows, instants }: Edges, at: number): number | undefined {
  const [weekly = Number.POSITIVE_INFINITY] = edgesAfter(zone, windows, at);
  const next = Math.min(weekly, instants.find((instant) => instant > at) ?? Number.POSITIVE_INFINITY);
  return next === Number.POSITIVE_INFINITY ? undefined : next;
}
