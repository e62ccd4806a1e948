/** Structured logs: JSON lines on stderr, one trace id from the browser's click to gpud's worker. */
import { randomBytes } from "node:crypto";
import pino from "pino";
import { env } from "#server/env.ts";
import { type Output, outputTo } from "#server/output.ts";
import { scrub } from "#server/scrub.ts";

export type Logger = pino.Logger;

const redact = [
  "password",
  "*.password",
  "token",
  "*.token",
  "secret",
  "*.secret",
  "authorization",
  "*.authorization",
  "cookie",
  "*.cookie",
];

/** Fields that hold secrets are hidden by name; what stands in texts, by its shape. */
export function loggerOptions(part: string): pino.LoggerOptions {
  return {
    level: env().SLUICE_LOG_LEVEL,
    base: { part },
    redact: { paths: redact, censor: "[hidden]" },
    hooks: { streamWrite: scrub },
  };
}

const loggers = new Map<string, Logger>();
/** All loggers share one output: dropped lines are counted together. */
let output: Output | undefined;

/** The logger of one part, e.g. `logger("portal")`. */
export function logger(part: string): Logger {
  let found = loggers.get(part);
  if (found === undefined) {
    output ??= outputTo(2, (msg) => JSON.stringify({ level: pino.levels.values.warn, time: Date.now(), part, msg }));
    found = pino(loggerOptions(part), output);
    loggers.set(part, found);
  }
  return found;
}

/** A new trace id: 16 random bytes in hex, as in W3C trace context. */
export function newTraceId(): string {
  return randomBytes(16).toString("hex");
}

/** The trace id of a `traceparent` header, or a new one when there is none that is well-formed. */
export function traceIdFrom(traceparent: string | null | undefined): string {
  const match = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? "");
  const id = match?.[1];
  return id === undefined || /^0+$/.test(id) ? newTraceId() : id;
}
