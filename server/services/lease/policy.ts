/** Times that hold for every lease, until policies of an installation's own replace them. */

/** Length of a lease when nothing was asked for, seconds. */
export const DEFAULT_LEASE_SECONDS = 4 * 3600;
/** The longest long poll, seconds. */
export const MAX_POLL_SECONDS = 25;
/** A session token is for connecting, not for the length of the session. */
export const TOKEN_SECONDS = 600;
/** How long a give-back waits for gpud to park or end the workers. */
export const GIVE_BACK_MS = 10_000;
