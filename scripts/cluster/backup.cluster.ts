/** Backup and restore as docs/operators/backup.md says, with the distribution's PostgreSQL and its own tools, and in a cluster. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type KubernetesObject, loadAllYaml, type V1ConfigMap, type V1Secret } from "@kubernetes/client-node";
import { count } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kubernetesFolder } from "#scripts/cluster/build.ts";
import { values as chartValues } from "#scripts/cluster/chart.ts";
import { kubectl, makeNamespace } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { openDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { checkSchema, migrateDatabase } from "#server/db/migrate.ts";
import { auditEvents } from "#server/db/schema/index.ts";
import { resetEnv } from "#server/env.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { list } from "#server/services/workspace/list.ts";
import { set } from "#server/services/workspace-variable/set.ts";
import { values } from "#server/services/workspace-variable/values.ts";

const execute = promisify(execFile);
const cluster = testCluster();
const machine = clusterAt();
const NAMESPACE = "backup-test";
const RELEASE = "sluice";

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
  await kubectl(machine, "delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false");
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

/** What `helm install` would make in the namespace as that is now, refused where something there is not the release's own. */
async function wouldInstall(): Promise<KubernetesObject[]> {
  const own = { database: {}, postgres: { enabled: true }, workspaces: { namespacePrefix: "backup" } };
  const args = ["install", RELEASE, path.resolve("deploy/helm/sluice"), "--namespace", NAMESPACE, "--values", "-"];
  const seeing = ["--kubeconfig", cluster.kubeconfig, "--dry-run=server", "--output", "json"];
  const running = execute(cluster.helm, [...args, ...seeing], { maxBuffer: 1 << 24 });
  running.child.stdin?.end(JSON.stringify({ ...chartValues, metrics: {}, ...own }));
  const { manifest } = JSON.parse((await running).stdout) as { manifest: string };
  return loadAllYaml(manifest).filter((object: unknown): object is KubernetesObject => object !== null);
}
const secretsAmong = (made: KubernetesObject[]) => made.filter(({ kind }) => kind === "Secret") as V1Secret[];
/** What is in the secrets, by their names and keys; and whom everybody is told to trust for them. */
function contents(made: KubernetesObject[]) {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const secrets = secretsAmong(made).map(({ metadata, data, stringData = {} }) => {
    const plain = Object.entries(stringData).map(([key, text]) => [key, base64(text)] as const);
    return [metadata?.name ?? "", { ...data, ...Object.fromEntries(plain) }] as const;
  });
  const settings = made.find(({ kind, metadata }) => kind === "ConfigMap" && metadata?.name === `${RELEASE}-settings`);
  const { "ca.crt": authority, "internal-ca.crt": internal } = (settings as V1ConfigMap).data ?? {};
  return { secrets: Object.fromEntries(secrets), trusted: { authority, internal } };
}
/** Runs the line of the document that begins like this, in the folder of this test and for its namespace. */
async function asDocumented(begins: string): Promise<void> {
  const text = await readFile("docs/operators/backup.md", "utf8");
  const line = text.split("\n").find((one) => one.trim().startsWith(begins));
  if (line === undefined) throw new Error(`The document has no line that begins with ${begins}.`);
  const env = { PATH: `${kubernetesFolder()}:${process.env.PATH}`, KUBECONFIG: cluster.kubeconfig };
  const here = line.replace("--namespace sluice ", `--namespace ${NAMESPACE} `);
  await execute("sh", ["-c", here], { cwd: folder, env: { ...process.env, ...env } });
}

it("brings every secret that the chart keeps back into a new namespace, where Helm makes none of them anew", async () => {
  await makeNamespace(machine, NAMESPACE);
  const made = await wouldInstall();
  const before = contents(made);
  const ofHelm = { "meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": NAMESPACE };
  for (const secret of secretsAmong(made)) {
    const annotations = { ...secret.metadata?.annotations, ...ofHelm };
    const metadata = { ...secret.metadata, namespace: NAMESPACE, annotations };
    await cluster.objects.create({ ...secret, metadata });
  }
  expect(contents(await wouldInstall()), "an installed release keeps its own").toEqual(before);
  const kept = Object.values(before.secrets).flatMap(Object.keys);
  expect(new Set(kept)).toEqual(
    new Set([
      ...["auth-secret", "signing-key", "secrets-key", "password", "url"],
      ...["tls.crt", "tls.key", "ca.crt", "ca.key"],
    ]),
  );
  const document = await readFile("docs/operators/backup.md", "utf8");
  for (const { metadata } of secretsAmong(made)) {
    expect(metadata?.annotations).toMatchObject({ "helm.sh/resource-policy": "keep" });
    expect(document).toContain(`\`${metadata?.name?.replace(RELEASE, "<release>")}\``);
  }

  await asDocumented("kubectl --namespace sluice get secret ");
  await makeNamespace(machine, NAMESPACE);
  const other = contents(await wouldInstall());
  for (const [name, data] of Object.entries(before.secrets)) expect(other.secrets[name]).not.toEqual(data);
  await asDocumented("kubectl --namespace sluice apply ");
  expect(contents(await wouldInstall())).toEqual(before);
}, 400_000);
