/** What a replay plays: who asks when, for what, and how long they would hold it. Times are milliseconds. */
import type { Waiting } from "../types.ts";

/** One request, whatever it is made from: a trace, or the log of an installation. */
export type Demand = {
  id: string;
  /** When it comes. */
  at: number;
  /** Its wait counts from here: before `at` for one that waited already when the replay begins. */
  createdAt: number;
  /** How long it holds what it gets. */
  holdMs: number;
  /** Leaves the queue after so long; nothing: waits for as long as it takes. */
  patienceMs?: number;
  /** The request that this one was made again for: it is left out when that one was served. */
  retryOf?: string;
  /** It came before the replay begins: it plays its part, and is not counted. */
  carried?: boolean;
} & Pick<
  Waiting,
  | "teamId"
  | "userId"
  | "milli"
  | "memoryBytes"
  | "guaranteedOnly"
  | "lengthMs"
  | "rank"
  | "kind"
  | "maxDevices"
  | "needs"
>;

/** What became of one request. */
export type Fate = {
  teamId: string;
  milli: number;
  /** From when to when it waited. */
  from: number;
  to: number;
  how: "granted" | "refused" | "gave up";
};

/** A team had so much for so long. */
export type Span = { teamId: string; milli: number; from: number; to: number };

/** What happened: in a replay, or in truth. */
export type Record = {
  fates: Fate[];
  held: Span[];
  /** Leases that were taken back. */
  reclaimed: number;
  endedAt: number;
};
