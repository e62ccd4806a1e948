/** Times that hold for every lease, where a team's policy says nothing else. */
import { DEFAULT_POLICY } from "#server/scheduler/notice.ts";

/** Minimum run time and notice of a lease that is taken back. */
export const RECLAIM_POLICY = DEFAULT_POLICY;
/** A lease without GPU work for so long ends; its memory is parked and the notebook lives. */
export const DEFAULT_IDLE_SECONDS = 20 * 60;
/** The longest lease, extensions included, where a team's policy says nothing. */
export const DEFAULT_MAX_LEASE_SECONDS = 7 * 24 * 3600;

/** Length of a lease when nothing was asked for, seconds. */
export const DEFAULT_LEASE_SECONDS = 4 * 3600;
/** The longest long poll, seconds. */
export const MAX_POLL_SECONDS = 25;
/** A session token is for connecting, not for the length of the session. */
export const TOKEN_SECONDS = 600;
/** How long a give-back waits for gpud to park or end the workers. */
export const GIVE_BACK_MS = 10_000;
