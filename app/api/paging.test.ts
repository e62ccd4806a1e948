/** A page of a list starts after an existing row. An unknown row is refused, because an empty page means the end. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { type ApiRoute, readRoutes } from "#scripts/generate/routes.ts";
import { type OpenDatabase, setDatabase } from "#server/db/client.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { call, type Fixture, keyOf, makeFixture, matrix } from "./testing.ts";

let test: TestDatabase;
let before: OpenDatabase | undefined;
let fixture: Fixture;

beforeAll(async () => {
  test = await createTestDatabase();
  fixture = await makeFixture(test.db);
  before = setDatabase(undefined);
});
afterAll(async () => {
  setDatabase(before);
  await test.drop();
});

type Property = { type?: string; pattern?: string };

/** The id that `after` takes; undefined where it is a number, or the place of a queue that moves. */
function unknownId({ definition }: ApiRoute): string | undefined {
  const schema = z.toJSONSchema(definition.input, { io: "input", unrepresentable: "any" });
  const after = (schema.properties as Record<string, Property> | undefined)?.after;
  if (after?.type !== "string" || after.pattern?.includes(" ")) return undefined;
  const prefix = /^\^([a-z]+)-/.exec(after.pattern ?? "")?.[1] ?? "team";
  return `${prefix}-${"a".repeat(26)}`;
}

const paged = (await readRoutes()).filter((route) => unknownId(route) !== undefined);

it("finds all paged lists", () => {
  expect(paged.map(keyOf).sort()).toEqual(
    ["costs/rows", "costs/waste", "leases", "notices", "pool/map", "users", "utilisation", "workspaces"].map(
      (path) => `GET /${path}`,
    ),
  );
});

it.each(paged.map((route) => ({ key: keyOf(route), route })))("$key refuses an unknown row", async ({ key, route }) => {
  const row = matrix[key];
  const params = row?.params?.(fixture) ?? {};
  const input = { ...(await row?.input?.(fixture)), after: unknownId(route) ?? "" };
  const answer = await call({ test, fixture }, route, "admin", { params, input });
  expect(answer.status, answer.text).toBe(400);
  expect(answer.text).toContain("after: No row of this list has this id.");
});
