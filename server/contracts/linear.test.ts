/**
 * Every text is read in time linear in its length: one that is not holds up all other requests of the process.
 * Each string of each contract reads texts that repeat one piece and end in something else.
 */
import { readdirSync } from "node:fs";
import { check } from "recheck";
import { expect, it } from "vitest";
import { z } from "zod";

/** Long enough that a quadratic reader takes longer than the limit, and a linear one does not. */
const LENGTH = 60_000;
const LIMIT_MS = 250;
const PIECES = ["1", "a", "A", " ", ".", "-", "_", "/", ":", ",", "=", "!", "a-", "a.", "1.", "1,", "1 ", "==1 ", "a@"];
const texts = PIECES.flatMap((piece) =>
  ["", "a", "1", "1,1", "a==1", "/"].map((start) => `${start}${piece.repeat(LENGTH / piece.length)}\u0001`),
);

const files = readdirSync("server/contracts").filter((name) => /^[a-z-]+\.ts$/.test(name));
const contracts = (
  await Promise.all(
    files.map(async (file) =>
      Object.entries((await import(/* @vite-ignore */ `./${file}`)) as Record<string, unknown>),
    ),
  )
).flat();

const strings = new Set<z.core.$ZodType>();
const seen = new Set<unknown>();
const isSchema = (value: unknown): value is z.core.$ZodType =>
  typeof value === "object" && value !== null && "_zod" in value;

/** Every string below a value: checks stand beside it, a pipe begins with it. */
function collect(value: unknown): void {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  if (!isSchema(value)) {
    for (const inner of Object.values(value)) collect(inner);
    return;
  }
  const { def } = value._zod;
  if (def.type === "string" || isStringFirst(def)) strings.add(value);
  if (def.type === "lazy") collect((def as z.core.$ZodLazyDef).getter());
  for (const inner of Object.values(def)) collect(inner);
}

function isStringFirst(def: z.core.$ZodTypeDef): boolean {
  return def.type === "pipe" && (def as z.core.$ZodPipeDef).in._zod.def.type === "string";
}

for (const [, value] of contracts) collect(value);

it("finds the strings of the contracts", () => {
  expect(strings.size).toBeGreaterThan(50);
});

it("reads every string in time linear in its length", () => {
  // The first reading compiles the expressions.
  for (const schema of strings) z.safeParse(schema, "a");
  for (const schema of strings) {
    for (const text of texts) {
      const started = performance.now();
      z.safeParse(schema, text);
      const took = performance.now() - started;
      expect(
        took,
        `${JSON.stringify(text.slice(0, 20))}… by ${JSON.stringify(z.toJSONSchema(schema as z.ZodType, { unrepresentable: "any" }))}`,
      ).toBeLessThan(LIMIT_MS);
    }
  }
}, 120_000);

it("uses no expression that recheck finds slower than linear", async () => {
  const found = [...seen].filter((value) => value instanceof RegExp);
  const expressions = [...new Map(found.map((expression) => [String(expression), expression])).values()];
  expect(expressions.length).toBeGreaterThan(20);
  const unsafe: string[] = [];
  for (const { source, flags } of expressions) {
    const { status } = await check(source, flags, { timeout: 60_000 });
    if (status !== "safe") unsafe.push(`${status}: ${source}`);
  }
  expect(unsafe).toEqual([]);
}, 240_000);
