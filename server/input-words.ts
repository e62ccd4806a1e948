/** What is wrong with an input, in words for the person who typed it, where a contract has none of its own. */
import type { z } from "zod";

const KINDS: Record<string, string> = {
  string: "A text",
  number: "A number",
  int: "A whole number",
  boolean: "True or false",
  array: "A list",
  object: "An object",
  record: "An object",
};

const FORMATS: Record<string, string | undefined> = {
  datetime: "A time in UTC is needed, e.g. 2026-11-25T19:30:00Z.",
  date: "A date is needed, e.g. 2026-11-25.",
  uuid: "A UUID is needed.",
};

/** A sentence for an issue; undefined leaves it to zod. */
export function inWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "This is needed." : `${KINDS[issue.expected] ?? issue.expected} is needed.`;
    case "too_small":
      return bound(issue.origin, issue.inclusive === false ? "More than" : "At least", issue.minimum);
    case "too_big":
      return bound(issue.origin, issue.inclusive === false ? "Less than" : "At most", issue.maximum);
    case "invalid_value":
      return issue.values.length === 1 ? `This is always ${String(issue.values[0])}.` : oneOf(issue.values);
    case "unrecognized_keys":
      return `There is no such field: ${issue.keys.join(", ")}.`;
    case "invalid_format":
      return FORMATS[issue.format] ?? "This is not in the format that is needed.";
    case "invalid_union": {
      const { options } = issue as { options?: readonly unknown[] };
      return options?.length ? oneOf(options) : "This is not in the format that is needed.";
    }
    default:
      return undefined;
  }
}

const oneOf = (values: readonly unknown[]): string => `One of these is needed: ${values.map(String).join(", ")}.`;

function bound(origin: string, words: string, most: number | bigint): string {
  const number = most.toLocaleString("en");
  if (origin === "string") return `${words} ${number} ${Number(most) === 1 ? "character" : "characters"}.`;
  if (origin === "array" || origin === "set") return `${words} ${number} of them.`;
  return `${words} ${number}.`;
}
