/** Changes that access tokens of each scope may make. The authorization matrix takes each action's scope from the code. */
import { expect, it } from "vitest";
import { readRoutes } from "#scripts/generate/routes.ts";
import { scopeOf } from "#server/auth/token-scopes.ts";
import type { TokenScope } from "#server/contracts/access-token.ts";

const routes = await readRoutes();

const changesOf = (scope: TokenScope) =>
  routes
    .filter(({ definition: { method, action } }) => method !== "GET" && scopeOf(action) === scope)
    .map(({ definition: { method, path } }) => `${method} ${path}`);

it("lets a token that may only read end its own session and play what-ifs, and change nothing else", () => {
  expect(changesOf("read")).toEqual(["DELETE /session", "POST /what-ifs"]);
});

it("lets a token for workspaces change workspaces, leases and requests of its person alone", () => {
  const others = changesOf("workspaces").filter((change) => !/^(POST|PUT|DELETE) \/(removed-)?workspaces/.test(change));
  expect(others).toEqual([
    "DELETE /lease-requests/{id}",
    "POST /leases/{id}/end",
    "POST /leases/{id}/extend",
    "POST /notices/read",
    "POST /quota-requests",
  ]);
});
