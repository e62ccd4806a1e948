/**
 * Guarantees must pack: the proof that every team can have all of its guarantee at once, in leases of its stated
 * largest request, on the real devices. First fit decreasing; where that finds no packing the edit is refused with
 * the packing it found, which an admin can check by hand.
 */
import { WHOLE } from "./amount.ts";
import { type Addition, breakpoints, nextAtMinute, type QuotaWindow, quotaAt } from "./calendar.ts";

export type PackedDevice = { id: string; name: string; serverName: string };
export type PromisedQuota = {
  teamId: string;
  teamName: string;
  guaranteedMilli: number;
  limitMilli: number;
  /** Leases of this size must fit. */
  largestMilli: number;
  windows: QuotaWindow[];
};
export type Promised = {
  quotas: PromisedQuota[];
  additions: (Addition & { teamId: string })[];
  reservations: { teamId: string; milli: number; unitMilli: number; from: number; to: number }[];
};

/** One device of a packing: which pieces lie on it, and what is left. */
export type Packed = { device: string; pieces: { teamName: string; milli: number }[]; leftMilli: number };
export type Proof =
  | { ok: true; strandedMilli: number }
  | { ok: false; at: number; missing: { teamName: string; milli: number }; packing: Packed[] };

/** Proves the promises at every time at which one of them changes, from `now` on for a week and to their ends. */
export function prove(devices: readonly PackedDevice[], promised: Promised, now: number): Proof {
  let strandedMilli = 0;
  for (const at of timesOf(promised, now)) {
    const proof = pack(devices, piecesAt(promised, at), at);
    if (!proof.ok) return proof;
    strandedMilli = Math.max(strandedMilli, proof.strandedMilli);
  }
  return { ok: true, strandedMilli };
}

function timesOf({ quotas, additions, reservations }: Promised, now: number): number[] {
  const weekly = breakpoints(quotas.flatMap((quota) => quota.windows)).map((minute) => nextAtMinute(minute, now));
  const edges = [...additions, ...reservations].flatMap(({ from, to }) => [from, to]).filter((at) => at > now);
  // A stretch of time and a weekly window may meet in any of its weeks.
  const inside = [...additions, ...reservations].flatMap(({ from, to }) =>
    weeklyWithin(quotas, Math.max(from, now), to),
  );
  return [...new Set([now, ...weekly, ...edges, ...inside])].sort((a, b) => a - b);
}

function weeklyWithin(quotas: readonly PromisedQuota[], from: number, to: number): number[] {
  const minutes = breakpoints(quotas.flatMap((quota) => quota.windows));
  return minutes.map((minute) => nextAtMinute(minute, from)).filter((at) => at >= from && at < to);
}

/** Pieces of one thousandth fit wherever anything fits; they are laid as one sum that may be divided. */
type Piece = { teamName: string; milli: number; divisible?: true };

/** What must fit at a time: each guarantee in pieces of the largest request, the rest in one smaller piece. */
function piecesAt({ quotas, additions, reservations }: Promised, at: number): Piece[] {
  return quotas.flatMap((quota) => {
    const { teamId, teamName } = quota;
    const own = additions.filter((addition) => addition.teamId === teamId);
    const { guaranteedMilli } = quotaAt(quota, quota.windows, own, at);
    const reserved = reservations.filter((one) => one.teamId === teamId && at >= one.from && at < one.to);
    return [
      ...cut(teamName, guaranteedMilli, quota.largestMilli),
      ...reserved.flatMap(({ milli, unitMilli }) => cut(teamName, milli, unitMilli)),
    ];
  });
}

function cut(teamName: string, milli: number, size: number): Piece[] {
  if (milli <= 0) return [];
  // Several GPUs are whole devices.
  const unit = Math.min(WHOLE, Math.max(1, size), milli);
  if (unit === 1) return [{ teamName, milli, divisible: true }];
  const whole = Array.from({ length: Math.floor(milli / unit) }, () => ({ teamName, milli: unit }));
  return milli % unit === 0 ? whole : [...whole, { teamName, milli: milli % unit }];
}

function pack(devices: readonly PackedDevice[], pieces: Piece[], at: number): Proof {
  const packing: Packed[] = devices.map(({ name, serverName }) => ({
    device: `${name} on ${serverName}`,
    pieces: [],
    leftMilli: WHOLE,
  }));
  const order = (piece: Piece) => (piece.divisible ? 0 : piece.milli);
  for (const piece of [...pieces].sort((a, b) => order(b) - order(a))) {
    const left = lay(piece, packing);
    if (left > 0) return { ok: false, at, missing: { teamName: piece.teamName, milli: left }, packing };
  }
  const free = packing.filter(({ leftMilli }) => leftMilli < WHOLE);
  return { ok: true, strandedMilli: free.reduce((sum, { leftMilli }) => sum + leftMilli, 0) };
}

/** Lays a piece where least is left over, or divided over many devices. Returns what found no place. */
function lay(piece: Piece, packing: Packed[]): number {
  const { teamName } = piece;
  if (!piece.divisible) {
    let best: Packed | undefined;
    for (const one of packing) {
      if (one.leftMilli >= piece.milli && (best === undefined || one.leftMilli < best.leftMilli)) best = one;
    }
    if (best) {
      put(best, teamName, piece.milli);
      return 0;
    }
    return piece.milli;
  }
  let left = piece.milli;
  for (const one of [...packing].sort((a, b) => a.leftMilli - b.leftMilli)) {
    const milli = Math.min(left, one.leftMilli);
    if (milli > 0) put(one, teamName, milli);
    left -= milli;
  }
  return left;
}

function put(one: Packed, teamName: string, milli: number): void {
  one.pieces.push({ teamName, milli });
  one.leftMilli -= milli;
}
