/** The chart as an organisation installs it: its own PostgreSQL by a secret, its own sign-in by OIDC, both of its own authority. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { getCACertificates, setDefaultCACertificates, TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeCertificates } from "#scripts/cluster/certificates.ts";
import { kubectl, makeNamespace } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { Browser, CLIENT_ID, CLIENT_SECRET, startProvider } from "#server/auth/testing.ts";
import { openDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { users } from "#server/db/schema/index.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";

const execute = promisify(execFile);
const cluster = testCluster();
const machine = clusterAt();
const NAMESPACE = "external-test";
// Fixed, because this cluster has no DNS.
const ADDRESS = { portal: "10.96.8.1", gateway: "10.96.8.2", broker: "10.96.8.3" };
const PORTAL = `http://${ADDRESS.portal}`;
const ADMIN = { email: "admin@example.com", password: "correct horse battery staple" };

let folder: string;
let postgres: EmbeddedPostgres;
let relay: Server;
let authority: string;
let issuer: Awaited<ReturnType<typeof startProvider>>;

/** A relay from pods to the database, which listens on a Unix socket alone. The relay accepts only TLS clients. */
async function startRelay(certificate: { key: string; cert: string }): Promise<Server> {
  const server = createServer((plain) => {
    plain.once("data", (request: Buffer) => {
      // An SSLRequest, by PostgreSQL's protocol (53.7, Message Formats): its length and its code.
      if (request.readInt32BE(0) !== 8 || request.readInt32BE(4) !== 80_877_103) return plain.destroy();
      plain.write("S");
      const from = new TLSSocket(plain, { ...certificate, isServer: true });
      const to = connect(postgres.socket);
      for (const [one, other] of [
        [from, to],
        [to, from],
      ] as const) {
        one.pipe(other);
        one.on("error", () => other.destroy());
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, cluster.address, resolve));
  return server;
}

const helm = async (...args: string[]) => {
  const home = { HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  const env = { ...process.env, ...home, KUBECONFIG: cluster.kubeconfig };
  return (await execute(cluster.helm, [...args, "--namespace", NAMESPACE], { env, maxBuffer: 1 << 24 })).stdout;
};
const secret = async (name: string, values: Record<string, string>) => {
  const words = Object.entries(values).map(([key, value]) => `--from-literal=${key}=${value}`);
  await kubectl(machine, "create", "secret", "generic", name, "--namespace", NAMESPACE, ...words);
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-external-"));
  postgres = await startEmbeddedPostgres(folder);
  await makeCertificates(folder, [cluster.address]);
  const file = async (name: string) => await readFile(path.join(folder, name), "utf8");
  const certificate = { key: await file("server.key"), cert: await file("server.crt") };
  authority = await file("ca.crt");
  // The browser of this test trusts it, too.
  setDefaultCACertificates([...getCACertificates("default"), authority]);
  relay = await startRelay(certificate);
  issuer = await startProvider({
    redirectUri: `${PORTAL}/api/auth/callback/oidc`,
    accounts: new Map([["root", { email: ADMIN.email, email_verified: true }]]),
    address: cluster.address,
    certificate,
  });
  await makeNamespace(machine, NAMESPACE);
  const url = new URL(postgres.url);
  url.searchParams.delete("host");
  url.searchParams.set("sslmode", "verify-full");
  url.host = `${cluster.address}:${(relay.address() as AddressInfo).port}`;
  await secret("database", { url: url.href });
  await secret("sign-in", { "client-id": CLIENT_ID, "client-secret": CLIENT_SECRET });
  await secret("admin", ADMIN);
}, 400_000);
afterAll(async () => {
  await helm("uninstall", "sluice").catch((error: unknown) => console.error(error));
  await kubectl(machine, "delete", "namespace", NAMESPACE, "--wait=false");
  issuer?.server.closeAllConnections();
  issuer?.server.close();
  relay?.close();
  await postgres?.stop();
  await rm(folder, { recursive: true, force: true });
}, 400_000);

it("signs in through the organisation's provider, and keeps its people in the organisation's database", async () => {
  const image = (name: string) => {
    const at = name.lastIndexOf(":");
    return { repository: name.slice(0, at), tag: name.slice(at + 1), pullPolicy: "Never" };
  };
  const small = { replicas: 1, resources: { requests: { cpu: "20m", memory: "64Mi" }, limits: { memory: "1Gi" } } };
  const values = {
    images: { controlPlane: image(cluster.controlPlaneImage) },
    database: { existingSecret: "database" },
    oidc: { issuer: issuer.origin, existingSecret: "sign-in" },
    admin: { existingSecret: "admin" },
    portal: { ...small, url: PORTAL, service: { clusterIP: ADDRESS.portal } },
    gateway: { ...small, url: "http://n.localhost", host: "n.localhost", service: { clusterIP: ADDRESS.gateway } },
    broker: { ...small, url: `https://${ADDRESS.broker}:3001`, service: { clusterIP: ADDRESS.broker } },
    gpud: { enabled: false },
    // Two releases may not share one, and other files install releases as well.
    workspaces: { namespacePrefix: "external" },
    certificateAuthorities: authority,
  };
  const file = path.join(folder, "values.json");
  await writeFile(file, JSON.stringify(values));
  const chart = path.resolve("deploy/helm/sluice");
  await helm("install", "sluice", chart, "--values", file, "--wait", "--wait-for-jobs", "--timeout", "280s");
  const pods = await kubectl(machine, "get", "pods", "--namespace", NAMESPACE, "--output", "name");
  expect(pods).not.toContain("postgres");

  const browser = new Browser(PORTAL);
  expect(await browser.signInWithOidc("root")).not.toContain("error=");
  expect(await (await browser.get("/api/v1/me")).json()).toMatchObject({ email: ADMIN.email });
  expect(await new Browser(PORTAL).signInWithOidc("stranger")).toContain("error=AccessDenied");
  const database = openDatabase(postgres.url, { max: 1 });
  try {
    const [person] = await database.db.select().from(users).where(eq(users.email, ADMIN.email));
    expect(person?.oidcSubject).toBe(`${issuer.origin}|root`);
    expect(issuer.origin).toMatch(/^https:/);
  } finally {
    await database.close();
  }
}, 400_000);
