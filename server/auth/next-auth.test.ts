/** Sign-in by password and through a real OIDC provider, driven over HTTP as a browser would. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { eq } from "drizzle-orm";
import NextAuth, { type AuthOptions } from "next-auth";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { handleAuth } from "#server/auth/handle-auth.ts";
import { hashPassword, passwordWork } from "#server/auth/password.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { type Accounts, Browser, CLIENT_ID, CLIENT_SECRET, listen, startProvider } from "#server/auth/testing.ts";
import { auditEvents, sessions, signInFailures, teams, users, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { sendChunks } from "#server/http/testing.ts";
import { watchRequests } from "#server/http/watch-requests.ts";
import { newId } from "#server/ids.ts";
import { list as listAudit } from "#server/services/audit/list.ts";
import { add as addGroup } from "#server/services/identity-group/add.ts";
import { addMember } from "#server/services/team/add-member.ts";
import { makePerson, makeWorkspace, makeWorld, type Person } from "#server/services/testing.ts";
import { setAdmin } from "#server/services/user/set-admin.ts";
import { unlinkOidc } from "#server/services/user/unlink-oidc.ts";

const accounts: Accounts = new Map();

let test: TestDatabase;
let portal: { server: Server; origin: string };
let issuer: { server: Server; origin: string };
let person: Person;

let stopWatching: () => void;

beforeAll(async () => {
  // As in the portal's process: requests say where they came from.
  stopWatching = watchRequests();
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
  stopWatching();
  portal.server.closeAllConnections();
  portal.server.close();
  issuer.server.closeAllConnections();
  issuer.server.close();
  await test.drop();
});
beforeEach(async () => {
  await test.db.delete(signInFailures);
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

  it("answers a request without a body that names JSON, as next-auth's client sends it", async () => {
    const headers = { "content-type": "application/json" };
    for (const page of ["providers", "csrf"]) {
      expect((await fetch(`${portal.origin}/api/auth/${page}`, { headers })).status).toBe(200);
    }
  });

  it("answers 413 to a body that goes on and on", async () => {
    const { port } = portal.server.address() as AddressInfo;
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const sent = { path: "/api/auth/callback/credentials", headers, chunks: 64, chunkBytes: 1024 * 1024 };
    expect((await sendChunks(port, sent)).status).toBe(413);
  });

  it("reads no more of a body than its limit, also without a server that limits it", async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled += 1024;
        controller.enqueue(new Uint8Array(1024));
      },
    });
    const url = `${portal.origin}/api/auth/callback/credentials`;
    const asked = new Request(url, { method: "POST", body, duplex: "half" } as RequestInit);
    const answer = await handleAuth(asked, async () => await Promise.reject(new Error("next-auth is reached")));
    expect(answer.status).toBe(413);
    expect(pulled).toBeLessThan(128 * 1024);
  });

  it.each(["http://localhost:4400.evil.test", "no address"])("answers 400 to the callbackUrl %s", async (url) => {
    const browser = new Visitor();
    const query = new URLSearchParams({ callbackUrl: url });
    expect((await browser.get(`/api/auth/signin?${query}`)).status).toBe(400);
    const csrfToken = await browser.csrfToken();
    const fields = { email: person.email, password: "correct horse", csrfToken, callbackUrl: url };
    expect((await browser.post("/api/auth/callback/credentials", fields)).status).toBe(400);
    expect(
      (
        await fetch(`${portal.origin}/api/auth/csrf`, {
          headers: { cookie: `__Host-sluice-callback=${encodeURIComponent(url)}` },
        })
      ).status,
    ).toBe(400);
  });

  it("tells a browser nothing of a statement that has failed", async () => {
    const browser = new Visitor();
    const csrfToken = await browser.csrfToken();
    await test.sql`alter table sign_in_failures rename to moved_away`;
    const answer = await browser.post("/api/auth/callback/credentials", {
      ...{ email: person.email, password: "correct horse", csrfToken, json: "true" },
    });
    await test.sql`alter table moved_away rename to sign_in_failures`;
    const told = `${answer.headers.get("location") ?? ""} ${await answer.text()}`;
    expect(answer.status).toBe(500);
    expect(told).toContain("error=Unavailable");
    expect(decodeURIComponent(told)).not.toMatch(/Failed query|sign_in_failures/);
  });

  it("counts by the address alone, whatever the e-mail, and not those who work there", async () => {
    const known = new Visitor();
    expect(await known.signIn(person.email, "correct horse")).toBe(200);
    for (let tried = 0; tried < 61; tried++) await new Visitor().signIn(`made-up-${tried}@example.org`, "x");
    const other = await makePerson(test.db, { name: "Wim" });
    expect(await new Visitor().signIn(other.email, "x")).toBe(429);
    expect(await known.signIn(person.email, "correct horse")).toBe(200);
    await test.db.delete(signInFailures);
  }, 120_000);

  it("checks two passwords at a time, lets a hundred wait and answers 429 to the rest", async () => {
    const held = Promise.withResolvers<void>();
    const before = passwordWork();
    const blocked = [0, 1].map(() => before.run(async () => await held.promise));
    const waiting = Array.from({ length: 100 }, () => before.run(async () => undefined));
    const browser = new Visitor();
    expect(await browser.signIn(person.email, "correct horse")).toBe(429);
    held.resolve();
    await Promise.all([...blocked, ...waiting]);
    expect(await browser.signIn(person.email, "correct horse")).toBe(200);
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

  it("leads from next-auth's own sign-out page to Settings, which has the button", async () => {
    const browser = new Visitor();
    await browser.signIn(person.email, "correct horse");
    const answer = await browser.get("/api/auth/signout");
    expect([answer.status, answer.headers.get("location")]).toEqual([302, "/settings"]);
    expect(await browser.principal()).toMatchObject({ kind: "user", userId: person.id });
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

const saying = (text: string): unknown => expect.stringContaining(text);

/** The audit entry of a refused sign-in, by the reference at the end of an address. */
async function refusalAt(address: string): Promise<Record<string, unknown>> {
  const reference = new URL(address).searchParams.get("reference") ?? "";
  expect(reference).toMatch(/^[0-9a-f]{8}$/);
  const admin = await makePerson(test.db, { name: "Ada", isAdmin: true });
  const { events } = await listAudit(admin.ctx, { what: reference, action: "session.refuse" });
  expect(events).toHaveLength(1);
  return events[0]?.detail ?? {};
}

describe("through a provider that deviates from the standard", () => {
  const trusting = async (run: () => Promise<void>) => {
    process.env.SLUICE_OIDC_TRUST_EMAIL = "1";
    resetEnv();
    try {
      await run();
    } finally {
      delete process.env.SLUICE_OIDC_TRUST_EMAIL;
      resetEnv();
    }
  };

  it("accepts the text true as true", async () => {
    accounts.set("word", { email: person.email, email_verified: "true" });
    const browser = new Visitor();
    await browser.signInWithOidc("word");
    expect(await browser.principal()).toMatchObject({ userId: person.id });
  });

  it("trusts an e-mail without email_verified only if configured, and never with email_verified false", async () => {
    accounts.set("entra", { email: person.email });
    expect(await refusalAt(await new Visitor().signInWithOidc("entra"))).toMatchObject({
      reason: saying("SLUICE_OIDC_TRUST_EMAIL=1"),
      email: person.email,
      oidcSubject: "entra",
    });
    await trusting(async () => {
      for (const email_verified of [false, "false"]) {
        accounts.set("liar", { email: person.email, email_verified });
        expect(await refusalAt(await new Visitor().signInWithOidc("liar"))).toMatchObject({
          reason: "The provider says that the e-mail is not verified. Have it verified there.",
        });
      }
      const browser = new Visitor();
      await browser.signInWithOidc("entra");
      expect(await browser.principal()).toMatchObject({ userId: person.id });
    });
  });

  it("asks the UserInfo endpoint for what the ID token leaves out", async () => {
    const thin = await startProvider({ redirectUri: `${portal.origin}/api/auth/callback/oidc`, accounts, thin: true });
    process.env.SLUICE_OIDC_ISSUER = thin.origin;
    resetEnv();
    try {
      accounts.set("okta", { email: person.email, email_verified: true });
      const browser = new Visitor();
      await browser.signInWithOidc("okta");
      expect(await browser.principal()).toMatchObject({ userId: person.id });
      accounts.set("unverified", { email: person.email, email_verified: false });
      expect(await refusalAt(await new Visitor().signInWithOidc("unverified"))).toMatchObject({
        reason: saying("not verified"),
      });
    } finally {
      process.env.SLUICE_OIDC_ISSUER = issuer.origin;
      resetEnv();
      thin.server.closeAllConnections();
      thin.server.close();
    }
  });

  it("accepts a missing name", async () => {
    accounts.set("nameless", { email: person.email, email_verified: true, name: null });
    const browser = new Visitor();
    await browser.signInWithOidc("nameless");
    expect(await browser.principal()).toMatchObject({ userId: person.id });
  });

  it("finds a group with and without the slash of its path", async () => {
    const admin = await makePerson(test.db, { name: "Ada", isAdmin: true });
    const [plain, nested] = [newId("team"), newId("team")];
    await test.db.insert(teams).values([
      { id: plain, name: "plain" },
      { id: nested, name: "nested" },
    ]);
    await addGroup(admin.ctx, { name: "ds", teamId: plain, role: "member" });
    await addGroup(admin.ctx, { name: "/ml/leads", teamId: nested, role: "lead" });
    accounts.set("path", { email: "path@example.org", email_verified: true, groups: ["/ds", "ml/leads"] });
    const browser = new Visitor();
    await browser.signInWithOidc("path");
    expect(await browser.principal()).toMatchObject({ teams: { [plain]: "member", [nested]: "lead" } });
  });

  it("tolerates a clock one minute ahead, and reports a larger skew", async () => {
    const ahead = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
    accounts.set("early", { email: person.email, email_verified: true, nbf: ahead(60) });
    const browser = new Visitor();
    await browser.signInWithOidc("early");
    expect(await browser.principal()).toMatchObject({ userId: person.id });
    accounts.set("too-early", { email: person.email, email_verified: true, nbf: ahead(600) });
    const refused = await refusalAt(await new Visitor().signInWithOidc("too-early"));
    expect(refused).toMatchObject({ reason: saying("clock is ahead") });
    expect(JSON.stringify(refused)).not.toMatch(/eyJ/);
  });

  it("reports a wrong client secret without showing it", async () => {
    process.env.SLUICE_OIDC_CLIENT_SECRET = "another-secret-of-the-client";
    resetEnv();
    try {
      const refused = await refusalAt(await new Visitor().signInWithOidc("vera"));
      expect(refused).toMatchObject({ reason: saying("SLUICE_OIDC_CLIENT_SECRET") });
      expect(JSON.stringify(refused)).not.toContain("another-secret");
    } finally {
      process.env.SLUICE_OIDC_CLIENT_SECRET = CLIENT_SECRET;
      resetEnv();
    }
  });

  it("reports missing access, and an account of another subject until an admin removes the link", async () => {
    accounts.set("stranger", { email: "somebody@example.org", email_verified: true, groups: ["cooks"] });
    expect(await refusalAt(await new Visitor().signInWithOidc("stranger"))).toMatchObject({
      reason: saying("none of the person's groups gives access"),
      groups: ["cooks"],
    });
    accounts.set("old", { email: person.email, email_verified: true });
    await new Visitor().signInWithOidc("old");
    accounts.set("new", { email: person.email, email_verified: true });
    expect(await refusalAt(await new Visitor().signInWithOidc("new"))).toMatchObject({
      reason: saying("linked to another subject"),
    });
    const admin = await makePerson(test.db, { name: "Ada", isAdmin: true });
    await unlinkOidc(admin.ctx, { id: person.id });
    const browser = new Visitor();
    await browser.signInWithOidc("new");
    expect(await browser.principal()).toMatchObject({ userId: person.id });
    expect(await new Visitor().signInWithOidc("old")).toContain("error=AccessDenied");
  });

  it("audits at most twenty refusals of one address in a quarter of an hour", async () => {
    await test.db.delete(signInFailures);
    const before = await test.db.$count(auditEvents, eq(auditEvents.action, "session.refuse"));
    for (let tried = 0; tried < 25; tried++) {
      await new Visitor().get("/api/auth/callback/oidc?error=made-up&error_description=of-a-stranger");
    }
    const after = await test.db.$count(auditEvents, eq(auditEvents.action, "session.refuse"));
    expect(after - before).toBe(20);
    await test.db.delete(signInFailures);
  });
});

describe("through a hostile identity provider", () => {
  let sent = 0;
  let redirected = 0;
  const hostile: Record<string, (response: ServerResponse) => void> = {
    endless: (response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536;
        response.once("drain", more);
      };
      more();
    },
    redirecting: (response) => {
      response.writeHead(302, { location: "/elsewhere" }).end();
    },
    slow: (response) => {
      const timer = setInterval(() => response.write("x"), 1_000);
      response.once("close", () => clearInterval(timer));
    },
  };

  it.each(Object.keys(hostile))("ends a sign-in whose provider is %s", { timeout: 20_000 }, async (kind) => {
    const provider = await listen((request, response) => {
      if (request.url === "/elsewhere") redirected += 1;
      hostile[kind]?.(response);
    });
    process.env.SLUICE_OIDC_ISSUER = provider.origin;
    resetEnv();
    try {
      const browser = new Visitor();
      const csrfToken = await browser.csrfToken();
      const answer = await browser.post("/api/auth/signin/oidc", { csrfToken, json: "true" });
      expect(await answer.text()).toContain("error=Provider&reference=");
      expect(sent).toBeLessThan(16 * 1024 * 1024);
      expect(redirected).toBe(0);
    } finally {
      process.env.SLUICE_OIDC_ISSUER = issuer.origin;
      resetEnv();
      provider.server.closeAllConnections();
      provider.server.close();
    }
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

/** Our handler over plain HTTP; in the portal, Next's route handler stands in its place. */
async function serveAuth(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", portal.origin);
  const hasBody = request.method === "POST";
  const asked = new Request(url, {
    method: request.method ?? "GET",
    headers: request.headers as Record<string, string>,
    ...(hasBody ? { body: Readable.toWeb(request) as ReadableStream, duplex: "half" } : {}),
  });
  const answer = await handleAuth(asked, async ({ init }, options) => await nextAuth(url, init, options));
  response.writeHead(answer.status, [...answer.headers].flat());
  response.end(Buffer.from(await answer.arrayBuffer()));
}

/** next-auth's handler for Node's requests, with what it answers as a web response. */
async function nextAuth(url: URL, { method, headers, body }: RequestInit, options: AuthOptions): Promise<Response> {
  const given = new Headers(headers);
  const pairs = (given.get("cookie") ?? "").split("; ").map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at), decodeURIComponent(pair.slice(at + 1))];
  });
  const nextauth = url.pathname.replace("/api/auth/", "").split("/");
  const apiRequest = {
    ...{ method, headers: Object.fromEntries(given) },
    query: { ...Object.fromEntries(url.searchParams), nextauth },
    cookies: Object.fromEntries(pairs) as Record<string, string>,
    body: Object.fromEntries(new URLSearchParams(Buffer.from((body ?? "") as Uint8Array).toString())),
  };
  const answer = { status: 200, headers: new Headers(), body: "" };
  const apiResponse = {
    status: (code: number) => {
      answer.status = code;
      return apiResponse;
    },
    getHeader: (name: string) => (name.toLowerCase() === "set-cookie" ? answer.headers.getSetCookie() : undefined),
    setHeader: (name: string, value: string | string[]) => {
      answer.headers.delete(name);
      for (const each of [value].flat()) answer.headers.append(name, each);
      return apiResponse;
    },
    json: (json: unknown) => {
      answer.headers.set("content-type", "application/json");
      answer.body = JSON.stringify(json);
    },
    send: (sent: unknown) => {
      answer.body = typeof sent === "string" ? sent : JSON.stringify(sent ?? "");
    },
    end: () => undefined,
  };
  await NextAuth(apiRequest as never, apiResponse as never, options);
  return new Response(answer.body === "" ? null : answer.body, answer);
}
