/** The messages of all contracts, which pages show to people. */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { inWords } from "#server/input-words.ts";

type Json = { type?: unknown; properties?: Record<string, Json>; items?: Json; anyOf?: Json[] };

/** Values that are wrong for one field or another. */
const WRONG = [null, true, "", "?", " ", "-a", "1.5x", "a\u0000b", "@", "x".repeat(100_000), -1, 0.1234, 1e15, [], {}];

/** An input of this shape with `value` in each place. */
function filled(shape: Json, value: unknown): unknown {
  const { properties, items, anyOf } = shape;
  if (properties !== undefined) {
    return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, filled(inner, value)]));
  }
  if (items !== undefined) return [filled(items, value), filled(items, value)];
  return anyOf?.[0] === undefined ? value : filled(anyOf[0], value);
}

function messagesOf(schema: z.ZodType): string[] {
  const shape = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", cycles: "ref" }) as Json;
  const inputs = [undefined, ...WRONG, ...WRONG.map((value) => filled(shape, value))];
  return inputs.flatMap((input) => {
    const parsed = schema.safeParse(input, { error: inWords });
    return parsed.success ? [] : parsed.error.issues.flatMap(allOf);
  });
}

/** Of a union the messages of its members: the answer has those of one. */
const allOf = (issue: z.core.$ZodIssue): string[] => [
  ...(issue.code === "unrecognized_keys" ? [] : [issue.message]),
  ...("errors" in issue ? (issue.errors as z.core.$ZodIssue[][]).flat().flatMap(allOf) : []),
];

const names = readdirSync("server/contracts").flatMap((file) => /^([a-z-]+)\.ts$/.exec(file)?.[1] ?? []);
const found = new Map<string, string>();
for (const contract of names) {
  const exported = (await import(`./${contract}.ts`)) as Record<string, unknown>;
  for (const [name, value] of Object.entries(exported)) {
    if (value instanceof z.ZodType) for (const message of messagesOf(value)) found.set(message, `${contract}: ${name}`);
  }
}

describe("the messages of the contracts", () => {
  it("are found", () => {
    expect(found.size).toBeGreaterThan(60);
    expect([...found.keys()]).toContain("A reservation ends after it begins.");
  });

  it.each([
    ["name no field of a program", /\b[a-z]+[A-Z]\w*|^[a-z]\w*:|\b[a-z]+_[a-z]+\b/],
    ["are sentences", /^[^A-Z0-9"]|[^.]$/],
    ["are ours, not zod's", /^Invalid |^Too (big|small)|received|expected /],
  ])("%s", (_, fault) => {
    expect([...found].filter(([message]) => fault.test(message))).toEqual([]);
  });

  it("repeat no long input", () => {
    expect([...found].filter(([message]) => message.length > 300)).toEqual([]);
  });

  it("have at most 25 words in a sentence", () => {
    const long = ([message]: [string, string]) => message.split(/[.?!:] /).some((one) => one.split(" ").length > 25);
    expect([...found].filter(long)).toEqual([]);
  });
});
