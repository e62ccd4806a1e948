import { expect, it } from "vitest";
import { type Action, authorize, type Resource } from "./authorize.ts";
import type { UserPrincipal } from "./principal.ts";

const person = (more: Partial<UserPrincipal> = {}): UserPrincipal => ({
  ...{ kind: "user", userId: "usr-a", email: "ada@example.test", name: "Ada", isAdmin: false, sessionId: "ses-a" },
  teams: { "team-a": "member" },
  ...more,
});
const own = { ownerId: "usr-a", teamId: "team-a", workspaceId: "ws-a" };
const others = { ...own, ownerId: "usr-b" };
const said = (principal: UserPrincipal, action: Action, resource: Resource) => {
  try {
    authorize(principal, action, resource);
    return "allowed";
  } catch (error) {
    return (error as Error).message;
  }
};

it("whoever may not is told what to do instead", () => {
  const token = { sessionId: undefined, tokenId: "pat-a" };
  const all = person({ ...token, tokenScopes: ["read", "workspaces", "manage"] });
  expect(said(person(), "workspace.open", own)).toBe("allowed");
  expect(said(all, "workspace.open", own)).toBe("This is done in the browser alone, never with an access token.");
  expect(said(all, "access-token.create", {})).toBe("This is done in the browser alone, never with an access token.");
  expect(said(all, "workspace.open", others)).toBe("You are not allowed to do this. Ask a team lead or an admin.");
  expect(said(person({ ...token, tokenScopes: ["read"] }), "workspace.stop", own)).toContain('scope "workspaces"');
  expect(said(person(), "workspace.change", others)).toBe(
    "You are not allowed to do this. Ask a team lead or an admin.",
  );
  expect(said(person({ isAdmin: true }), "workspace.change", others)).toBe(
    "Admins may not do this either: it is for its owner, or for members of the team.",
  );
});
