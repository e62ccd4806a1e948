/** Backup and restore as docs/operators/backup.md says, with the distribution's PostgreSQL and its own tools. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { count } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { openDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { checkSchema, migrateDatabase } from "#server/db/migrate.ts";
import { auditEvents } from "#server/db/schema/index.ts";
import { resetEnv } from "#server/env.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { list } from "#server/services/workspace/list.ts";
import { set } from "#server/services/workspace-variable/set.ts";
import { values } from "#server/services/workspace-variable/values.ts";

const execute = promisify(execFile);

let folder: string;
let server: EmbeddedPostgres;
let programs: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-backup-"));
  programs = await distributionPrograms();
  const binaries = { initdb: path.join(programs, "initdb"), postgres: path.join(programs, "postgres") };
  server = await startEmbeddedPostgres(folder, { binaries });
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** PostgreSQL's programs as the distribution installed them, the newest version's. */
async function distributionPrograms(): Promise<string> {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? await readdir(root) : [];
  const [newest] = versions
    .filter((one) => existsSync(path.join(root, one, "bin", "initdb")))
    .sort()
    .reverse();
  if (newest === undefined) throw new Error(`There is no PostgreSQL in ${root}. Install Debian's package postgresql.`);
  return path.join(root, newest, "bin");
}

const named = (name: string) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
const program = async (name: string, ...args: string[]) => await execute(path.join(programs, name), args);
/** The keys of the installation lie in this state directory from here on. */
function withKeysOf(state: string): void {
  process.env.SLUICE_STATE_DIR = state;
  resetEnv();
}

it("brings people, workspaces, their secrets and the audit back from a dump and the keys, and nothing secret without them", async () => {
  const state = path.join(folder, "state");
  withKeysOf(state);
  await migrateDatabase(server.url);
  const before = openDatabase(server.url, { max: 2 });
  const world = await makeWorld(before.db);
  const { id } = await makeWorkspace(world, { owner: world.member, name: "kept", running: false });
  await set(world.member.ctx, { id, name: "API_KEY", value: "my secret", secret: true });
  const events = async ({ db }: typeof before) => (await db.select({ n: count() }).from(auditEvents))[0]?.n;
  const written = await events(before);
  await before.close();

  const dump = path.join(folder, "sluice.dump");
  await program("pg_dump", "--format=custom", "--file", dump, server.url);
  await cp(path.join(state, "keys"), path.join(folder, "keys"), { recursive: true });
  expect((await execute("grep", ["--count", "my secret", dump]).catch(() => ({ stdout: "0" }))).stdout.trim()).toBe(
    "0",
  );

  await program("createdb", "--maintenance-db", server.url, "restored");
  await program("pg_restore", "--exit-on-error", "--no-owner", "--dbname", named("restored"), dump);
  const elsewhere = path.join(folder, "elsewhere");
  await cp(path.join(folder, "keys"), path.join(elsewhere, "keys"), { recursive: true });
  withKeysOf(elsewhere);
  const after = openDatabase(named("restored"), { max: 2 });
  try {
    await checkSchema(after.sql);
    const cookie = new Headers({ cookie: world.member.cookie });
    const principal = await principalFromHeaders(after.db, cookie);
    expect(principal).toMatchObject({ kind: "user", userId: world.member.id });
    const ctx = { ...world.member.ctx, db: after.db };
    expect((await list(ctx, {})).workspaces).toMatchObject([{ id, name: "kept", observed: "stopped" }]);
    expect(await values({ ...world.system, db: after.db }, id)).toEqual({ API_KEY: "my secret" });
    expect(await events(after)).toBe(written);
    withKeysOf(path.join(folder, "without keys"));
    await expect(values({ ...world.system, db: after.db }, id)).rejects.toThrow(
      "cannot be opened with this installation's key",
    );
  } finally {
    await after.close();
  }
});
