/** Sign-in by password and through a real OIDC provider, driven over HTTP as a browser would. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { eq } from "drizzle-orm";
import NextAuth from "next-auth";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { authOptions } from "#server/auth/next-auth.ts";
import { hashPassword } from "#server/auth/password.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { type Accounts, Browser, CLIENT_ID, CLIENT_SECRET, listen, startProvider } from "#server/auth/testing.ts";
import { auditEvents, sessions, users, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { add as addGroup } from "#server/services/identity-group/add.ts";
import { addMember } from "#server/services/team/add-member.ts";
import { makePerson, makeWorkspace, makeWorld, type Person } from "#server/services/testing.ts";
import { setAdmin } from "#server/services/user/set-admin.ts";

const accounts: Accounts = new Map();

let test: TestDatabase;
let portal: { server: Server; origin: string };
let issuer: { server: Server; origin: string };
let person: Person;

beforeAll(async () => {
  test = await useTestDatabase();
  portal = await listen(serveAuth);
  issuer = await startProvider({ redirectUri: `${portal.origin}/api/auth/callback/oidc`, accounts });
  Object.assign(process.env, {
    NEXTAUTH_URL: portal.origin,
    SLUICE_PORTAL_URL: portal.origin,
    SLUICE_OIDC_ISSUER: issuer.origin,
    SLUICE_OIDC_CLIENT_ID: CLIENT_ID,
    SLUICE_OIDC_CLIENT_SECRET: CLIENT_SECRET,
  });
  resetEnv();
});
afterAll(async () => {
  portal.server.closeAllConnections();
  portal.server.close();
  issuer.server.closeAllConnections();
  issuer.server.close();
  await test.drop();
});
beforeEach(async () => {
  person = await makePerson(test.db, { name: "Vera" });
  await test.db
    .update(users)
    .set({ passwordHash: await hashPassword("correct horse") })
    .where(eq(users.id, person.id));
});

const SESSION = "__Host-sluice-session";

describe("by password", () => {
  it("opens a session in a host-only cookie that no script and no plain connection can read", async () => {
    const browser = new Visitor();
    expect(await browser.signIn(person.email, "correct horse")).toBe(200);
    expect(browser.attributes.get(SESSION)).toMatch(/Path=\/;.*HttpOnly; Secure; SameSite=Lax/);
    expect(browser.attributes.get(SESSION)).not.toMatch(/Domain/i);
    expect(await browser.principal()).toMatchObject({ kind: "user", userId: person.id });
  });

  it("opens none for a wrong password, nor without the form's CSRF token", async () => {
    const browser = new Visitor();
    expect(await browser.signIn(person.email, "wrong horse")).toBe(401);
    expect(browser.cookies.has(SESSION)).toBe(false);
    await browser.post("/api/auth/callback/credentials", {
      email: person.email,
      password: "correct horse",
      csrfToken: "x",
    });
    expect(browser.cookies.has(SESSION)).toBe(false);
  });

  it("ends by signing out, on record, also for whoever copied the cookie", async () => {
    const browser = new Visitor();
    await browser.signIn(person.email, "correct horse");
    const copied = browser.cookieHeader();
    await browser.post("/api/auth/signout", { csrfToken: await browser.csrfToken(), json: "true" });
    expect(await principalFromHeaders(test.db, new Headers({ cookie: copied }))).toEqual({ kind: "anonymous" });
    const events = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, person.id));
    expect(events.map((event) => event.action)).toContain("session.end");
  });

  it("stays ended when next-auth would renew the cookie", async () => {
    const browser = new Visitor();
    await browser.signIn(person.email, "correct horse");
    await test.db.update(sessions).set({ revokedAt: new Date() }).where(eq(sessions.userId, person.id));
    await browser.get("/api/auth/session");
    expect(browser.cookies.get(SESSION) ?? "").toBe("");
  });
});

describe("through the OIDC provider", () => {
  it("finds the person by the verified e-mail", async () => {
    accounts.set("vera", { email: person.email, email_verified: true });
    const browser = new Visitor();
    await browser.signInWithOidc("vera");
    expect(await browser.principal()).toMatchObject({ kind: "user", userId: person.id });
    const [row] = await test.db.select().from(users).where(eq(users.id, person.id));
    expect(row?.oidcSubject).toBe(`${issuer.origin}|vera`);
  });

  it("does not believe an e-mail that is not verified, and makes no account of its own accord", async () => {
    accounts.set("mallory", { email: person.email, email_verified: false });
    const browser = new Visitor();
    expect(await browser.signInWithOidc("mallory")).toContain("error=AccessDenied");
    expect(browser.cookies.get(SESSION) ?? "").toBe("");
    accounts.set("stranger", { email: "stranger@example.org", email_verified: true });
    expect(await new Visitor().signInWithOidc("stranger")).toContain("error=AccessDenied");
  });

  it("gives what the person's groups give, an account too, and takes it back when they have left them", async () => {
    const world = await makeWorld(test.db);
    await addGroup(world.admin.ctx, { name: "vision-people", teamId: world.team, role: "member" });
    await addGroup(world.admin.ctx, { name: "vision-leads", teamId: world.team, role: "lead" });
    await addGroup(world.admin.ctx, { name: "platform", role: "admin" });
    const email = "grace@example.org";
    const seen = async (groups: string[] | string | undefined) => {
      accounts.set("grace", { email, email_verified: true, ...(groups === undefined ? {} : { groups }) });
      const browser = new Visitor();
      expect(await browser.signInWithOidc("grace")).not.toContain("error=");
      const principal = await browser.principal();
      return principal.kind === "user" ? [principal.name, principal.isAdmin, principal.teams] : principal;
    };
    accounts.set("grace", { email, email_verified: true, groups: ["cooks"] });
    expect(await new Visitor().signInWithOidc("grace")).toContain("error=AccessDenied");
    accounts.set("grace", { email, email_verified: false, groups: ["vision-people"] });
    expect(await new Visitor().signInWithOidc("grace")).toContain("error=AccessDenied");

    expect(await seen("vision-people")).toEqual(["grace", false, { [world.team]: "member" }]);
    expect(await seen(["vision-people", "vision-leads", "platform"])).toEqual([
      "grace",
      true,
      { [world.team]: "lead" },
    ]);
    // Nothing said is nothing changed.
    expect(await seen(undefined)).toEqual(["grace", true, { [world.team]: "lead" }]);
    const [grace] = await test.db.select().from(users).where(eq(users.email, email));
    const owner = { id: grace?.id ?? "" };
    const { id: workspaceId } = await makeWorkspace(world, { owner });
    expect(await seen(["cooks"])).toEqual(["grace", false, {}]);
    const [stopped] = await test.db.select().from(workspaces).where(eq(workspaces.id, workspaceId));
    expect(stopped?.desired).toBe("stopped");

    // An admin by group is kept as one by hand.
    expect(await seen(["platform"])).toEqual(["grace", true, {}]);
    const kept = await setAdmin(world.admin.ctx, { ...owner, isAdmin: true });
    expect(kept).toMatchObject({ isAdmin: true, adminByGroup: false });
    expect(await seen([])).toEqual(["grace", true, {}]);
    await setAdmin(world.admin.ctx, { ...owner, isAdmin: false });

    // What was given by hand stays, whatever a group says.
    await addMember(world.admin.ctx, { teamId: world.team, email, role: "member" });
    expect(await seen(["vision-leads"])).toEqual(["grace", false, { [world.team]: "member" }]);
    expect(await seen([])).toEqual(["grace", false, { [world.team]: "member" }]);
    const told = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, owner.id));
    expect(told.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["user.create-by-group", "team.add-member", "team.remove-member", "user.set-admin"]),
    );
  });
});

class Visitor extends Browser {
  constructor() {
    super(portal.origin);
  }

  principal() {
    return principalFromHeaders(test.db, new Headers({ cookie: this.cookieHeader() }));
  }
}

/** next-auth with our options over plain HTTP; in the portal, Next's route handler stands in its place. */
async function serveAuth(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", portal.origin);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const pairs = (request.headers.cookie ?? "").split("; ").map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at), decodeURIComponent(pair.slice(at + 1))];
  });
  const nextauth = url.pathname.replace("/api/auth/", "").split("/");
  const apiRequest = Object.assign(request, {
    query: { ...Object.fromEntries(url.searchParams), nextauth },
    cookies: Object.fromEntries(pairs) as Record<string, string>,
    body: Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString())),
  });
  const apiResponse = Object.assign(response, {
    status: (code: number) => {
      response.statusCode = code;
      return response;
    },
    json: (body: unknown) => response.setHeader("content-type", "application/json").end(JSON.stringify(body)),
    send: (body: unknown) => response.end(typeof body === "object" ? JSON.stringify(body) : body),
  });
  const web = new Request(url, { headers: request.headers as Record<string, string> });
  await NextAuth(apiRequest as never, apiResponse as never, await authOptions(web));
}
