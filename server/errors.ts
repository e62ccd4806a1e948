/** The closed set of errors. Every message is for a person and says what can be done next; there is never a stack. */
import { z } from "zod";

export const errorCodes = [
  /** The input is wrong. */
  "invalid",
  /** The body is larger than is read. */
  "too-large",
  /** Nobody is signed in, or the credential is not valid. */
  "unauthenticated",
  /** Signed in, but not allowed. */
  "forbidden",
  "not-found",
  /** Something else exists or is under way that excludes this. */
  "conflict",
  /** Cannot be under today's rules. */
  "refused",
  /** A quota stands in the way. */
  "quota",
  /** Asked too often; `detail.retryAfterSeconds` says when again. */
  "too-many",
  /** Cannot be now; try again. */
  "unavailable",
  "internal",
] as const;
export type ErrorCode = (typeof errorCodes)[number];

export class SluiceError extends Error {
  readonly code: ErrorCode;
  /** Machine-readable particulars, safe to show. */
  readonly detail: unknown;

  constructor(code: ErrorCode, message: string, detail?: unknown) {
    super(message);
    this.name = "SluiceError";
    this.code = code;
    this.detail = detail;
  }
}

const statuses: Record<ErrorCode, number> = {
  invalid: 400,
  "too-large": 413,
  unauthenticated: 401,
  forbidden: 403,
  "not-found": 404,
  conflict: 409,
  refused: 422,
  quota: 422,
  "too-many": 429,
  unavailable: 503,
  internal: 500,
};

/** The one mapping of error codes to HTTP. */
export function httpStatus(code: ErrorCode): number {
  return statuses[code];
}

/** The body of every HTTP error. */
export type ErrorBody = { error: { code: ErrorCode; message: string; detail?: unknown } };

export function errorBody(error: SluiceError): ErrorBody {
  return {
    error: {
      code: error.code,
      message: error.message,
      ...(error.detail === undefined ? {} : { detail: error.detail }),
    },
  };
}

const unavailableCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "57P01",
  "57P02",
  "57P03",
]);

const AWAY = "The database cannot be reached just now. Try again in a few seconds.";
const FULL = "The database has no disk space, memory or connection left for this. Try again later, or tell an admin.";

/** PostgreSQL's class of "insufficient resources": its disk is full, or its memory or connections are used up. */
const isFull = (code: string) => /^53[0-9A-Z]{3}$/.test(code);

/** PostgreSQL's or the socket's error code, wherever drizzle wrapped it. */
export function databaseCode(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ("code" in at && typeof at.code === "string" && !(at instanceof SluiceError)) return at.code;
  }
  return undefined;
}

/** Codes of a refused connection to a Unix socket: the server is not there, or its queue of connections is full. */
const unavailableSocketCodes = new Set(["ENOENT", "EAGAIN"]);

/** Whether the connection to a Unix socket failed; the same codes mean something else for files. */
function isSocketAway(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { code, syscall } = at as NodeJS.ErrnoException;
    if (syscall === "connect" && code !== undefined && unavailableSocketCodes.has(code)) return true;
  }
  return false;
}

/** Whether a unique index refused a write (PostgreSQL 23505). */
export function isUniqueViolation(error: unknown): boolean {
  return databaseCode(error) === "23505";
}

/** A trigger refused to add something to a team that is put away (`teams.archived_at`). */
const TEAM_ARCHIVED = "SLT01";

/** The unique index that refused a write; undefined when none did. */
export function violatedIndex(error: unknown): string | undefined {
  if (!isUniqueViolation(error)) return undefined;
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ("constraint_name" in at && typeof at.constraint_name === "string") return at.constraint_name;
  }
  return undefined;
}

/** `limitMilli: The limit is …` as people read it. */
export const withoutField = (message: string): string => message.replace(/^[a-z][A-Za-z.]*: /, "");

/** An `invalid` error that names each wrong field, and of two bounds that one does not keep the narrower. */
export function invalidInput(error: z.ZodError): SluiceError {
  const fields = error.issues
    .filter(
      ({ path, code }, at, all) => !all.slice(at + 1).some((later) => later.code === code && same(later.path, path)),
    )
    .map((issue) => ({ field: issue.path.join("."), message: issue.message }));
  const message = fields.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)).join(" ");
  return new SluiceError("invalid", message, { fields });
}

const same = (one: readonly PropertyKey[], other: readonly PropertyKey[]) =>
  one.length > 0 && one.length === other.length && one.every((part, at) => part === other[at]);

/** Whether the database is away or full: what failed would fail again just now. */
export function isAway(error: unknown): boolean {
  return toSluiceError(error).code === "unavailable";
}

/** Faults of the language and of statements: their texts are for the log. */
const faults = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError", "AggregateError", "ZodError"]);

/**
 * What a person may read of a failure: the sentence that a check or a launcher of ours has thrown. A failed statement's
 * text is SQL with its values, and a fault of the language helps nobody; both become a generic sentence. The caller logs
 * the error.
 */
export function messageFor(error: unknown): string {
  if (!(error instanceof Error)) return "Something went wrong on our side. The log of this process says what.";
  const isOurs = error instanceof SluiceError;
  const isStatement = error.message.startsWith("Failed query") || error.name.endsWith("QueryError");
  const isDatabase = isStatement || error.name === "PostgresError" || isAway(error);
  if (isOurs || !(isDatabase || faults.has(error.name))) return error.message;
  return isAway(error)
    ? toSluiceError(error).message
    : "Something went wrong on our side. The log of this process says what.";
}

/** Any thrown value as a SluiceError: others become `unavailable` (no database, or a full one) or `internal`. */
export function toSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error;
  if (error instanceof z.ZodError) return invalidInput(error);
  const code = databaseCode(error);
  if ((code !== undefined && unavailableCodes.has(code)) || isSocketAway(error)) {
    return new SluiceError("unavailable", AWAY);
  }
  if (code !== undefined && isFull(code)) return new SluiceError("unavailable", FULL);
  if (code === TEAM_ARCHIVED) {
    return new SluiceError("conflict", "This team is archived. An admin brings it back on the page of teams.");
  }
  return new SluiceError(
    "internal",
    "Something went wrong on our side. It is in the log under the trace id of this answer.",
  );
}
