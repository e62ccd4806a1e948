/**
 * The authorization matrix: every route of the tree called as every caller, with the real handlers on a real
 * PostgreSQL. A route without a row, a row without a route, and a status that the API document does not name fail.
 */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
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
  type Row,
  roles,
  scopedTokens,
} from "./testing.ts";

/** An admin's cookie on a request from another site's page. */
const CROSS_SITE = "adminCrossSite";
const callers = [...roles, ...scopedTokens, CROSS_SITE] as const;
type Caller = (typeof callers)[number];

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

it.each(routes.map((route) => ({ key: keyOf(route), route })))("$key", async ({ key, route }) => {
  const row = matrix[key];
  if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
  const statuses = await statusesOf(route, row);
  expect(statuses).toEqual(expectedOf(route, row));
  const documentedStatuses = documented(route);
  expect(Object.entries(statuses).filter(([, status]) => !documentedStatuses.includes(status))).toEqual([]);
});

const closed = routes.filter(
  (route) => matrix[keyOf(route)]?.expected.anonymous === 401 && route.definition.anonymousInput !== true,
);

it.each(closed.map((route) => ({ key: keyOf(route), route })))(
  "$key decides who may call before it reads the input",
  async ({ key, route }) => {
    const input = vi.spyOn(route.definition.input._zod, "run");
    const params = Object.fromEntries([...key.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, "-"]));
    const sent = { params, input: { "no such field": "x" } };
    expect((await call({ test, fixture }, route, "anonymous", sent)).status).toBe(401);
    // A member gets 403 before the input is read where an admin alone may call the operation.
    if (isDecidedByPrincipal(route.definition.action) && matrix[key]?.expected.stranger === 403) {
      expect((await call({ test, fixture }, route, "stranger", sent)).status).toBe(403);
    }
    expect(input).not.toHaveBeenCalled();
    input.mockRestore();
  },
);

/** The status for each caller, as a number or as a matcher. */
function expectedOf({ definition: { action, method } }: ApiRoute, { expected }: Row): Record<Caller, unknown> {
  const scope = scopeOf(action);
  return {
    ...expected,
    ownerReadToken: scope === "read" ? expected.ownerToken : refusedBy(expected.ownerToken),
    adminOwnToken:
      scope === "read"
        ? expected.adminToken
        : scope === "workspaces"
          ? expect.toBeOneOf([expected.colleague, 403])
          : refusedBy(expected.adminToken),
    [CROSS_SITE]: method === "GET" ? expected.admin : 403,
  };
}

/** A token without the scope gets 403 where one with the scope succeeds. Elsewhere the earlier check may answer. */
const refusedBy = (withScope: number): unknown => (withScope < 300 ? 403 : expect.toBeOneOf([withScope, 403]));

async function statusesOf(route: ApiRoute, row: Row): Promise<Partial<Record<Caller, number>>> {
  const statuses: Partial<Record<Caller, number>> = {};
  for (const caller of callers) {
    const crossSite = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    const [role, headers] = caller === CROSS_SITE ? (["admin", crossSite] as const) : ([caller, {}] as const);
    const sent = { params: row.params?.(fixture) ?? {}, input: (await row.input?.(fixture)) ?? {}, headers };
    statuses[caller] = (await call({ test, fixture }, route, role, sent)).status;
  }
  return statuses;
}
