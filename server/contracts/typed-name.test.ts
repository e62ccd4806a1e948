import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { createAccessTokenInput } from "./access-token.ts";
import { gpuType, personName } from "./common.ts";
import { datasetName } from "./dataset.ts";
import { teamName } from "./team.ts";
import { workspaceName } from "./workspace.ts";
import { sizeName } from "./workspace-size.ts";
import { variableName } from "./workspace-variable.ts";

const said = (schema: z.ZodType, text: string) => schema.safeParse(text).error?.issues[0]?.message;

describe.each([
  ["a workspace", workspaceName],
  ["a size", sizeName],
  ["a person", personName],
])("the name of %s", (_, schema) => {
  it.each(["हिन्दी", "मेरा काम", "ทดสอบที่", "বাংলা", "naïve", "العربية", "日本語", "Ελλάδα", "می‌خواهم", "a-b_c. d"])(
    "may be %s",
    (name) => {
      expect(schema.parse(name)).toBe(name.normalize("NFC"));
    },
  );

  it("is composed before validation, because two spellings look the same", () => {
    const typed = "  U\u0308bung ";
    expect(schema.parse(typed)).toBe("Übung");
    expect(schema.parse("e\u0301".repeat(40))).toHaveLength(40);
  });

  it("has no line break and no control character", () => {
    for (const character of ["\n", "\r", "\u0000", "\u001b", "\u2028", "\u202e", "\u2066"]) {
      expect(said(schema, `a${character}b`)).toMatch(/U\+[0-9A-F]{4} is not allowed/);
    }
  });
});

it("is refused with the invalid character", () => {
  expect(said(workspaceName, "Bob's test")).toMatch(/may follow\. "'" \(U\+0027\) is not allowed\.$/);
  expect(said(workspaceName, "pb (2)")).toContain('"(" (U+0028) is not allowed.');
  expect(said(workspaceName, "-x")).toContain('"-" (U+002D) is not allowed at the start.');
  expect(said(workspaceName, "a\u200bb")).toContain("U+200B is not allowed.");
  // A joiner is allowed between letters only.
  expect(said(workspaceName, "a\u200d")).toContain("U+200D");
  expect(said(sizeName, "a😀")).toContain('"😀" (U+1F600) is not allowed.');
  expect(said(teamName, "Vision")).toContain('"V" (U+0056) is not allowed.');
  expect(said(teamName, "übung")).toContain('"ü" (U+00FC) is not allowed.');
  expect(said(teamName, "a".repeat(41))).toContain("At most 40 characters.");
  expect(said(gpuType, "h 200")).toContain("U+0020 is not allowed.");
  expect(said(datasetName, "-data")).toContain("at the start");
  expect(said(variableName, "1A")).toContain('"1" (U+0031) is not allowed at the start.');
  expect(said(createAccessTokenInput.shape.name, "a\tb")).toContain("U+0009");
});
