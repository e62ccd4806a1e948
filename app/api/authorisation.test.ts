/**
 * Who may call what: every route of the tree, as every role, with the real handlers on a real PostgreSQL. A route
 * without a row in the matrix, a row without a route, and a status that the API's document does not name fail.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type ApiRoute, readRoutes } from "#scripts/generate/routes.ts";
import { isDecidedByPrincipal } from "#server/auth/authorize.ts";
import { scopeOf } from "#server/auth/token-scopes.ts";
import { type OpenDatabase, setDatabase } from "#server/db/client.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import {
  call,
  documented,
  type Fixture,
  keyOf,
  makeFixture,
  matrix,
  type Role,
  type Row,
  roles,
  type Scoped,
} from "./testing.ts";

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

it("has a row for every route, and a route for every row", () => {
  expect(Object.keys(matrix).sort()).toEqual(routes.map(keyOf).sort());
});

describe.each(routes.map((route) => ({ key: keyOf(route), route })))("$key", ({ key, route }) => {
  it.each(roles)("as %s", async (role) => {
    const row = matrix[key];
    if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
    expect(await statusOf(route, row, role)).toBe(row.expected[role]);
  });

  it("as a token that may only read", async () => {
    const row = matrix[key];
    if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
    const status = await statusOf(route, row, "ownerReadToken");
    const reads = scopeOf(route.definition.action) === "read";
    if (reads) expect(status).toBe(row.expected.ownerToken);
    else if (row.expected.ownerToken < 300) expect(status).toBe(403);
    else expect(status).toBeGreaterThanOrEqual(400);
  });

  it("as an admin's token for what is the admin's own", async () => {
    const row = matrix[key];
    if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
    const status = await statusOf(route, row, "adminOwnToken");
    const scope = scopeOf(route.definition.action);
    if (scope === "read") expect(status).toBe(row.expected.adminToken);
    else if (scope === "workspaces") expect([row.expected.colleague, 403]).toContain(status);
    else expect(status).toBeGreaterThanOrEqual(400);
  });

  it("asks who calls before it reads what is sent", async () => {
    const row = matrix[key];
    if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
    if (row.expected.anonymous !== 401 || route.definition.anonymousInput === true) return;
    const input = vi.spyOn(route.definition.input._zod, "run");
    const params = Object.fromEntries([...key.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, "-"]));
    const sent = { params, input: { "no such field": "x" } };
    expect((await call({ test, fixture }, route, "anonymous", sent)).status).toBe(401);
    // Nor is a member's where an admin alone may do it, whatever it is done to.
    if (isDecidedByPrincipal(route.definition.action) && row.expected.stranger === 403) {
      expect((await call({ test, fixture }, route, "stranger", sent)).status).toBe(403);
    }
    expect(input).not.toHaveBeenCalled();
    input.mockRestore();
  });

  it("is refused when another site's page sends it with the cookie", async () => {
    const row = matrix[key];
    if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
    const status = await statusOf(route, row, "admin", {
      origin: "https://evil.example",
      "sec-fetch-site": "cross-site",
    });
    expect(status).toBe(route.definition.method === "GET" ? row.expected.admin : 403);
  });
});

async function statusOf(
  route: ApiRoute,
  row: Row,
  role: Role | Scoped,
  headers: Record<string, string> = {},
): Promise<number> {
  const sent = { params: row.params?.(fixture) ?? {}, input: (await row.input?.(fixture)) ?? {}, headers };
  const { status } = await call({ test, fixture }, route, role, sent);
  expect(documented(route)).toContain(status);
  return status;
}
