import { describe, expect, it } from "vitest";
import { z } from "zod";
import { instant, milli } from "#server/contracts/common.ts";
import { workspaceEventsInput } from "#server/contracts/workspace.ts";
import { parse } from "#server/parse.ts";

const said = (schema: z.ZodType, value: unknown) => {
  try {
    parse(z.strictObject({ at: schema }), { at: value });
    return "fine";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("what is wrong with an input", () => {
  it.each([
    [z.string(), 5, "at: A text is needed."],
    [z.string(), undefined, "at: This is needed."],
    [z.boolean(), "yes", "at: True or false is needed."],
    [z.string().min(1), "", "at: At least 1 character."],
    [z.string().max(3), "four", "at: At most 3 characters."],
    [z.array(z.string()).max(1), ["a", "b"], "at: At most 1 of them."],
    [z.int().max(86_400), 100_000, "at: At most 86,400."],
    [milli.min(1), -5, "at: At least 1."],
    [z.enum(["never", "ask"]), "sometimes", "at: One of these is needed: never, ask."],
    [
      z.discriminatedUnion("kind", [z.object({ kind: z.literal("nfs") }), z.object({ kind: z.literal("s3") })]),
      { kind: "smb" },
      "at.kind: One of these is needed: nfs, s3.",
    ],
    [z.union([z.number(), z.array(z.number())]), "x", "at: This is not in the format that is needed."],
    [z.string().regex(/^a$/), "b", "at: This is not in the format that is needed."],
    [z.strictObject({}), { b: 1, c: 2 }, "at: There is no such field: b, c."],
    [instant, "yesterday", "at: A time in UTC is needed, e.g. 2026-11-25T19:30:00Z."],
    [z.string().min(2, "A name has two letters."), "a", "at: A name has two letters."],
  ])("%#: is told in a sentence", (schema, value, sentence) => {
    expect(said(schema, value)).toBe(sentence);
  });

  it("may be more than the database holds", () => {
    expect(said(instant, "0000-01-01T00:00:00Z")).toBe("at: A time from 1970 on is needed.");
    expect(said(instant, "2026-11-25T00:00:00Z")).toBe("fine");
    const id = `ws-${"a".repeat(26)}`;
    expect(workspaceEventsInput.safeParse({ id, generation: "3000000000" }).success).toBe(false);
    expect(workspaceEventsInput.safeParse({ id, generation: "3" }).success).toBe(true);
  });
});
