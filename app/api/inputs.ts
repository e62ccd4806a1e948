/** Inputs for a route out of the JSON schema of its contract: right ones, and ones that are wrong in one place. */
import fc from "fast-check";

export type Schema = {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  pattern?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
};

/** What no contract means: of every type, and at the edges of what a database or a clock can hold. */
const strange = fc.oneof(
  fc.constantFrom<unknown>(
    ...[
      null,
      true,
      0,
      -0,
      -1,
      0.5,
      2 ** 31,
      2 ** 53,
      1e308,
      "",
      " ",
      "\u0000",
      "\ud800",
      "../..",
      "%00",
      "'; --",
      "\u202e",
    ],
    ...["NaN", "Infinity", "-1", "1e999", "0000-00-00", "+275760-09-13T00:00:00Z", "-000001-01-01T00:00:00Z"],
    ...["9999-12-31T23:59:59.999Z", "2000-02-30T00:00:00Z", [], {}, [[]]],
  ),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.double(),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(Number),
  fc.jsonValue({ maxDepth: 3 }),
);

/** A value that the schema allows, as far as it says so itself. */
export function valid(schema: Schema): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map(valid));
  if (schema.allOf !== undefined) return fc.tuple(...schema.allOf.map(valid)).map((parts) => parts.at(-1));
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case "object":
      return fc.record(
        Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, valid(inner)])),
        { requiredKeys: schema.required ?? [] },
      );
    case "array":
      return fc.array(valid(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 4, (schema.minItems ?? 0) + 4),
      });
    case "string":
      return text(schema);
    case "integer":
      return fc.integer({
        min: Math.max(schema.minimum ?? 0, Number.MIN_SAFE_INTEGER),
        max: Math.min(schema.maximum ?? 2 ** 40, Number.MAX_SAFE_INTEGER),
      });
    case "number":
      return fc.double({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9, noNaN: true });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function text({ pattern, format, minLength = 0, maxLength = 200 }: Schema): fc.Arbitrary<string> {
  if (format === "date-time") {
    return fc
      .date({ min: new Date("1970-01-01"), max: new Date("2200-01-01"), noInvalidDate: true })
      .map((at) => at.toISOString());
  }
  if (format === "email") return fc.emailAddress();
  if (format === "uuid") return fc.uuid();
  if (format === "uri") return fc.webUrl();
  // Lookaround is not made into strings; the example has a right one.
  if (pattern !== undefined && !pattern.includes("(?=") && !pattern.includes("(?!")) {
    return fc.stringMatching(new RegExp(pattern));
  }
  return fc.string({ unit: "grapheme", minLength, maxLength: Math.min(maxLength, minLength + 60) });
}

/** The example with some fields as the schema allows them, and sometimes one as it does not, or one too many. */
export function around(schema: Schema, example: Record<string, unknown>): fc.Arbitrary<Record<string, unknown>> {
  const properties = Object.entries(schema.properties ?? {});
  const changed = fc
    .record(
      Object.fromEntries(
        properties.map(([name, inner]) => [name, fc.option(valid(inner), { nil: undefined, freq: 1 })]),
      ),
    )
    .map((some) => ({ ...example, ...withoutUndefined(some) }));
  const spoiled = fc
    .tuple(changed, fc.constantFrom(...properties.map(([name]) => name), "unknown"), strange)
    .map(([input, name, value]) => ({ ...input, [name]: value }));
  const lacking = fc
    .tuple(changed, fc.constantFrom(...properties.map(([name]) => name), "unknown"))
    .map(([input, name]) => withoutUndefined({ ...input, [name]: undefined }));
  return fc.oneof(
    { arbitrary: changed, weight: 2 },
    { arbitrary: spoiled, weight: 3 },
    { arbitrary: lacking, weight: 1 },
  );
}

function withoutUndefined(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
}
