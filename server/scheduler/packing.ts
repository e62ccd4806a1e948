/**
 * Guarantees must pack: the proof that every team can have all of its guarantee at once, in leases of its stated
 * largest request, on the real devices. First fit decreasing; where that finds no packing the edit is refused with
 * the packing it found, which an admin can check by hand. Who shares cards with whom holds here as it does for leases:
 * a team that takes whole cards needs as many as its guarantee rounds up to, and pieces of a team that shares cards
 * only among its own people lie beside no other team's.
 */
import { type CoTenancyOf, underPolicy } from "./allowed.ts";
import { WHOLE } from "./amount.ts";
import { type Addition, edgesAfter, type QuotaWindow, quotaAt } from "./calendar.ts";
import type { CoTenancy } from "./types.ts";

export type PackedDevice = { id: string; name: string; serverName: string };
export type PromisedQuota = {
  teamId: string;
  teamName: string;
  guaranteedMilli: number;
  limitMilli: number;
  /** Leases of this size must fit. */
  largestMilli: number;
  /** With whom it shares cards; left out: with anybody. */
  coTenancy?: CoTenancy;
  windows: QuotaWindow[];
};
export type Promised = {
  /** By whose clocks the windows count their weeks. */
  zone: string;
  quotas: PromisedQuota[];
  additions: (Addition & { teamId: string })[];
  reservations: { teamId: string; milli: number; unitMilli: number; from: number; to: number }[];
};

/** One device of a packing: which pieces lie on it, and what is left. */
export type Packed = { device: string; pieces: { teamName: string; milli: number }[]; leftMilli: number };
export type Proof =
  | { ok: true; spareMilli: number }
  | { ok: false; at: number; missing: { teamName: string; milli: number }; packing: Packed[] };

/** Proves the promises at every time at which one of them changes, from `now` on for a week and to their ends. */
export function prove(devices: readonly PackedDevice[], promised: Promised, now: number): Proof {
  const policies = new Map(promised.quotas.map(({ teamId, coTenancy = "any" }) => [teamId, coTenancy]));
  const policyOf = (teamId: string) => policies.get(teamId) ?? "any";
  let spareMilli = 0;
  for (const at of timesOf(promised, now)) {
    const proof = pack(devices, piecesAt(promised, at, devices.length * WHOLE), at, policyOf);
    if (!proof.ok) return proof;
    spareMilli = Math.max(spareMilli, proof.spareMilli);
  }
  return { ok: true, spareMilli };
}

function timesOf({ zone, quotas, additions, reservations }: Promised, now: number): number[] {
  // All windows go by the same clocks: what they say together is the same in every week, before and after a change.
  const windows = quotas.flatMap((quota) => quota.windows);
  const weekly = edgesAfter(zone, windows, now);
  const edges = [...additions, ...reservations].flatMap(({ from, to }) => [from, to]).filter((at) => at > now);
  // A stretch of time and a weekly window may meet in any of its weeks.
  const inside = [...additions, ...reservations].flatMap(({ from, to }) =>
    edgesAfter(zone, windows, Math.max(from, now)).filter((at) => at < to),
  );
  return [...new Set([now, ...weekly, ...edges, ...inside])].sort((a, b) => a - b);
}

/** Pieces of one thousandth fit wherever anything fits; they are laid as one sum that may be divided. */
type Piece = { teamId: string; teamName: string; milli: number; divisible?: true };

/** What must fit at a time: each guarantee in pieces of the largest request, the rest in one smaller piece. */
function piecesAt({ zone, quotas, additions, reservations }: Promised, at: number, most: number): Piece[] {
  return quotas.flatMap((quota) => {
    const { teamId } = quota;
    const own = additions.filter((addition) => addition.teamId === teamId);
    const { guaranteedMilli } = quotaAt({ zone, plain: quota, windows: quota.windows, additions: own }, at);
    const reserved = reservations.filter((one) => one.teamId === teamId && at >= one.from && at < one.to);
    return [
      ...cut(quota, guaranteedMilli, quota.largestMilli, most),
      ...reserved.flatMap(({ milli, unitMilli }) => cut(quota, milli, unitMilli, most)),
    ];
  });
}

/** `most` is what the devices have: a piece more shows that it is too little, and nobody lays millions of them. */
function cut(
  { teamId, teamName, coTenancy = "any" }: PromisedQuota,
  amount: number,
  size: number,
  most: number,
): Piece[] {
  if (amount <= 0) return [];
  const whole = coTenancy === "whole-cards";
  const milli = underPolicy(amount, coTenancy);
  // Several GPUs are whole devices.
  const unit = whole ? WHOLE : Math.min(WHOLE, Math.max(1, size), milli);
  if (unit === 1) return [{ teamId, teamName, milli, divisible: true }];
  const count = Math.min(Math.floor(milli / unit), Math.floor(most / unit) + 1);
  const units = Array.from({ length: count }, () => ({ teamId, teamName, milli: unit }));
  return milli % unit === 0 ? units : [...units, { teamId, teamName, milli: milli % unit }];
}

/** A device while pieces are laid on it, with the team that has it for itself. */
type Laid = Packed & { ownedBy?: string };

function pack(devices: readonly PackedDevice[], pieces: Piece[], at: number, policyOf: CoTenancyOf): Proof {
  const packing: Laid[] = devices.map(({ name, serverName }) => ({
    ...{ device: `${name} on ${serverName}`, pieces: [], leftMilli: WHOLE },
  }));
  // Those who share with nobody else first, so that the others fill what they leave whole.
  const apart = ({ teamId }: Piece) => (policyOf(teamId) === "any" ? 0 : 1);
  const order = (piece: Piece) => (piece.divisible ? 0 : piece.milli);
  for (const piece of [...pieces].sort((a, b) => apart(b) - apart(a) || order(b) - order(a))) {
    const left = lay(piece, packing, apart(piece) === 1);
    if (left === 0) continue;
    const shown = packing.map(({ ownedBy: _, ...rest }) => rest);
    return { ok: false, at, missing: { teamName: piece.teamName, milli: left }, packing: shown };
  }
  const free = packing.filter(({ leftMilli }) => leftMilli < WHOLE);
  return { ok: true, spareMilli: free.reduce((sum, { leftMilli }) => sum + leftMilli, 0) };
}

/**
 * Whether so much of a piece may lie on a device, as `mayShare` has it: there are many of both, and what is left tells
 * most of them apart. Who takes whole cards comes in whole pieces, beside which nothing is left.
 */
function takes(one: Laid, { teamId }: Piece, milli: number, apart: boolean): boolean {
  if (one.leftMilli < milli) return false;
  return one.ownedBy === (apart ? teamId : undefined) || one.leftMilli === WHOLE;
}

/** Lays a piece where least is left over, or divided over many devices. Returns what found no place. */
function lay(piece: Piece, packing: readonly Laid[], apart: boolean): number {
  if (!piece.divisible) {
    let best: Laid | undefined;
    for (const one of packing) {
      if (takes(one, piece, piece.milli, apart) && (best === undefined || one.leftMilli < best.leftMilli)) best = one;
    }
    if (best) {
      put(best, piece, piece.milli, apart);
      return 0;
    }
    return piece.milli;
  }
  let left = piece.milli;
  const may = packing.filter((one) => takes(one, piece, 1, apart));
  for (const one of may.sort((a, b) => a.leftMilli - b.leftMilli)) {
    const milli = Math.min(left, one.leftMilli);
    if (milli > 0) put(one, piece, milli, apart);
    left -= milli;
  }
  return left;
}

function put(one: Laid, { teamId, teamName }: Piece, milli: number, apart: boolean): void {
  if (apart) one.ownedBy = teamId;
  one.pieces.push({ teamName, milli });
  one.leftMilli -= milli;
}
