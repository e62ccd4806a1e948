/** The embedded PostgreSQL and our way to it: restarts, lost connections, schemas of other versions. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { awaitSchema, checkSchema, migrateDatabase } from "#server/db/migrate.ts";
import { createTestDatabase } from "#server/db/testing.ts";
import { toSluiceError } from "#server/errors.ts";
import { freePort } from "#server/free-port.ts";
import { createLive, type LiveEvent, notify } from "#server/live.ts";
import { shortFolder } from "#server/short-folder.ts";

describe("the embedded server", () => {
  let folder: string;
  let server: EmbeddedPostgres;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "sluice-pg-"));
    server = await startEmbeddedPostgres(folder);
  });
  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it("lets a process wait at its start until the server is back", async () => {
    await migrateDatabase(server.url);
    await server.stop();
    const { sql, close } = openDatabase(server.url, { max: 1 });
    const said: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => said.push(line) });
    const waiting = awaitSchema(sql, log);
    const poll = expect.poll(() => said.join(""), { timeout: 10_000 });
    await poll.toContain("the start waits for it").finally(async () => {
      server = await startEmbeddedPostgres(folder);
      await waiting;
      await close();
    });
  });

  it("listens on a Unix socket of its own folder alone, and asks for its password", async () => {
    const { sql, close } = openDatabase(server.url, { max: 1 });
    expect((await sql`show listen_addresses`)[0]).toEqual({ listen_addresses: "" });
    expect((await sql`select inet_server_addr() as address`)[0]).toEqual({ address: null });
    await close();
    expect((await stat(path.dirname(server.socket))).mode & 0o777).toBe(0o700);
    const without = new URL(server.url);
    without.password = "wrong";
    const refused = openDatabase(without.href, { max: 1 });
    await expect(refused.sql`select 1`).rejects.toMatchObject({ code: "28P01" });
    await refused.close();
  });

  it("is taken over when it runs already", async () => {
    const again = await startEmbeddedPostgres(folder);
    expect(again).toMatchObject({ adopted: true, url: server.url, pid: server.pid });
  });

  it("gets a socket with a short path when its state directory lies deep", async () => {
    const deep = path.join(folder, "a".repeat(120));
    const other = await startEmbeddedPostgres(deep);
    expect(Buffer.byteLength(other.socket)).toBeLessThanOrEqual(107);
    const { sql, close } = openDatabase(other.url, { max: 1 });
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
    await close();
    await other.stop();
    await rm(await shortFolder(deep));
  });

  it("is moved to its socket when an older version left it on TCP", async () => {
    const older = path.join(folder, "older");
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", port: String(await freePort()) };
    // The database `sluice` cannot be reached: the server is up nevertheless.
    await expect(startEmbeddedPostgres(older, { settings })).rejects.toThrow();
    const moved = await startEmbeddedPostgres(older);
    expect(moved.adopted).toBe(false);
    const { sql, close } = openDatabase(moved.url, { max: 1 });
    expect((await sql`show listen_addresses`)[0]).toEqual({ listen_addresses: "" });
    await close();
    await moved.stop();
  });

  it("may go away and come back: callers hear `unavailable`, and nobody has to start again", async () => {
    const database = openDatabase(server.url, { max: 2 });
    const live = createLive(database.sql);
    const heard: LiveEvent[] = [];
    await live.ready();
    live.subscribe(["pool"], (event) => heard.push(event));
    await database.sql`create table kept (n int)`;
    await database.sql`insert into kept values (42)`;
    await server.stop();
    const error = await database.sql`select 1`.then(
      () => undefined,
      (thrown: unknown) => toSluiceError(thrown),
    );
    expect(error?.code).toBe("unavailable");
    server = await startEmbeddedPostgres(folder);
    await expect
      .poll(async () => await database.sql`select n from kept`.catch(() => []), { timeout: 10_000 })
      .toEqual([{ n: 42 }]);
    // After the gap anything may have changed, and what is written from now on is heard again.
    await expect.poll(() => heard, { timeout: 10_000 }).toContainEqual({ topic: "pool", id: null });
    await notify(database.db, "pool", "gsv-x");
    await expect.poll(() => heard).toContainEqual({ topic: "pool", id: "gsv-x" });
    await live.close();
    await database.close();
  });
});

describe("the supervised server", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "sluice-pg-"));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it.each(["started", "adopted"])("that was %s is started again on its socket when it is killed", async (how) => {
    const first = how === "adopted" ? await startEmbeddedPostgres(folder) : undefined;
    const restarts: string[] = [];
    const server = await startEmbeddedPostgres(folder, { onRestart: (reason) => restarts.push(reason) });
    expect(server.adopted).toBe(how === "adopted");
    const database = openDatabase(server.url, { max: 2 });
    await database.sql`create table if not exists kept (n int)`;
    await database.sql`insert into kept values (42)`;
    process.kill(server.pid ?? 0, "SIGKILL");
    await expect.poll(() => restarts[0], { timeout: 10_000 }).toMatch(/^PostgreSQL ended with/);
    await expect
      .poll(async () => await database.sql`select n from kept limit 1`.catch(() => []), { timeout: 20_000 })
      .toEqual([{ n: 42 }]);
    await database.close();
    await server.stop();
    await first?.stop();
    await expect(answers(server.socket)).resolves.toBe(false);
  });

  it("stays down when it was stopped", async () => {
    const restarts: string[] = [];
    const server = await startEmbeddedPostgres(folder, { onRestart: (reason) => restarts.push(reason) });
    await server.stop();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(restarts).toEqual([]);
    await expect(answers(server.socket)).resolves.toBe(false);
  });
});

/** Whether a server listens on a Unix socket. */
async function answers(socket: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    });
    connection.once("error", () => resolve(false));
  });
}

describe("who follows after having read", () => {
  it("hears at once of what changed in between, and of nothing that is older", async () => {
    const test = await createTestDatabase();
    const live = createLive(test.sql);
    await live.ready();
    const sleep = () => new Promise((resolve) => setTimeout(resolve, 5));
    const told: LiveEvent[] = [];
    live.subscribe(["pool"], (event) => told.push(event));
    await sleep();
    const before = Date.now();
    await notify(test.db, "pool", "gsv-x");
    await expect.poll(() => told).toHaveLength(1);
    await sleep();
    const heardSince = (since?: number) => {
      const heard: LiveEvent[] = [];
      live.subscribe(["pool", "lease"], (event) => heard.push(event), since)();
      return heard;
    };
    expect(heardSince(before)).toEqual([{ topic: "pool", id: null }]);
    expect(heardSince(Date.now())).toEqual([]);
    expect(heardSince()).toEqual([]);
    // What happened before this process listened, nobody here knows.
    expect(heardSince(0)).toEqual([
      { topic: "pool", id: null },
      { topic: "lease", id: null },
    ]);
    await live.close();
    await test.drop();
  });
});

describe("migrations", () => {
  it("may be started by many processes at once", async () => {
    const test = await createTestDatabase();
    await test.sql`drop schema public cascade`;
    await test.sql`drop schema drizzle cascade`;
    await test.sql`create schema public`;
    await Promise.all([migrateDatabase(test.url), migrateDatabase(test.url), migrateDatabase(test.url)]);
    await checkSchema(test.sql);
    await test.drop();
  });

  it("refuse a schema of a newer version, and processes refuse an older one", async () => {
    const test = await createTestDatabase();
    await test.sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('future', 99999999999999)`;
    await expect(migrateDatabase(test.url)).rejects.toThrow(/newer version/);
    await expect(checkSchema(test.sql)).rejects.toThrow(/newer version/);
    await test.sql`delete from drizzle.__drizzle_migrations where id > 1`;
    await expect(checkSchema(test.sql)).rejects.toThrow(/older/);
    await test.drop();
  });
});
