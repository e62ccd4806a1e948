/**
 * Whatever is sent, the answer is one that the API's document names: never a fault of ours, always the contract's shape.
 * What schemathesis does from outside, with the inputs of the authorisation matrix as the place to start from.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type ApiRoute, readRoutes } from "#scripts/generate/routes.ts";
import { errorBody, nothing } from "#server/contracts/common.ts";
import { type OpenDatabase, setDatabase } from "#server/db/client.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { around, type Schema } from "./inputs.ts";
import { call, documented, type Fixture, keyOf, makeFixture, matrix, roles, type Sent, textOf } from "./testing.ts";

/** Inputs for each route; `SLUICE_CONTRACT_RUNS` makes more of them. */
const RUNS = Number(process.env.SLUICE_CONTRACT_RUNS ?? 8);

let test: TestDatabase;
let before: OpenDatabase | undefined;
let fixture: Fixture;
const routes = await readRoutes();

beforeAll(async () => {
  test = await createTestDatabase();
  fixture = await makeFixture(test.db);
  before = setDatabase(undefined);
});
afterAll(async () => {
  setDatabase(before);
  await test.drop();
});

describe.each(routes.map((route) => ({ key: keyOf(route), route })))("$key", ({ key, route }) => {
  // A second try has other inputs: what the first has found would be passed over.
  it("answers as it is documented", { retry: 0, timeout: 120_000 }, async () => {
    const row = matrix[key];
    if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
    const example = { ...row.params?.(fixture), ...(await row.input?.(fixture)) };
    const schema = z.toJSONSchema(route.definition.input, { io: "input", unrepresentable: "any" }) as Schema;
    const inputs = around(schema, example);
    // Whoever may do it gets deepest, and an owner is not always an admin; the others are refused.
    const role = fc.constantFrom(...roles, ...(["admin", "lead", "owner"] as const));
    await fc.assert(
      fc.asyncProperty(role, inputs, async (role, input) => {
        expectDocumented(route, await call({ test, fixture }, route, role, apart(route, input)));
      }),
      { numRuns: RUNS },
    );
  });
});

/** Path parameters are never empty, as such a path is another route's. */
function apart({ definition: { path } }: ApiRoute, input: Record<string, unknown>): Sent {
  const inPath = ([name]: [string, unknown]) => path.includes(`{${name}}`);
  const entries = Object.entries(input);
  const params = entries.filter(inPath).map(([name, value]) => [name, textOf(value).toWellFormed() || "-"]);
  const missing = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, "-"]);
  return {
    params: Object.fromEntries([...missing, ...params]) as Record<string, string>,
    input: Object.fromEntries(entries.filter((entry) => !inPath(entry))),
  };
}

function expectDocumented(route: ApiRoute, answer: { status: number; type: string; text: string }): void {
  const { status = 200, stream, csv, output } = route.definition;
  const what = `${answer.status} ${answer.type} ${answer.text.slice(0, 500)}`;
  expect(documented(route), what).toContain(answer.status);
  if (answer.status >= 400) {
    const { error } = errorBody.parse(JSON.parse(answer.text));
    expect(error.code, what).not.toBe("internal");
    return;
  }
  if (answer.type.startsWith("text/event-stream")) expect(stream, what).toBeDefined();
  else if (answer.type.startsWith("text/csv")) expect(csv, what).toBe(true);
  // A download: the document names no JSON for it.
  else if (/^(text\/x-shellscript|application\/octet-stream)/.test(answer.type)) expect(output, what).toBe(nothing);
  else {
    expect(answer.status, what).toBe(status);
    if (status !== 303) expect(output.safeParse(JSON.parse(answer.text)).error, what).toBeUndefined();
  }
}
