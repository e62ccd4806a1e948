import { expect, it } from "vitest";
import { ownPath } from "#server/http/own-path.ts";

const portal = "http://localhost:3000";
const to = (wanted?: string) => ownPath(wanted, portal, "/workspaces");

it.each(["/gpus", "/workspaces/ws-1?tab=log", "/a//b"])("goes to the portal's own %s", (wanted) => {
  expect(to(wanted)).toBe(wanted);
});

it("takes its own full address too", () => {
  expect(to(`${portal}/teams?x=1`)).toBe("/teams?x=1");
});

it.each([
  "http://x//evil.example",
  "/.//evil.example/a",
  "/..//evil.example",
  "/a/..//evil.example",
  "//evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "/\t/evil.example",
  "/.\\/evil.example",
  "https://evil.example/a",
  `${portal}//evil.example`,
  "javascript:alert(1)",
  "data:text/html,x",
  "http://",
])("does not follow %j away", (wanted) => {
  expect(to(wanted)).toBe("/workspaces");
});

it("has a place to go to without an address", () => {
  expect(to()).toBe("/workspaces");
  expect(to("")).toBe("/workspaces");
});
