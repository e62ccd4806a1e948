/** An image that a container engine builds from what `npm run images -- --context` writes; the node pulls and runs it. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kubectl, makeNamespace } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { LOGIN, registryAt, registrySecret, startRegistry } from "#scripts/cluster/registry.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { writeContext } from "#scripts/images/archive.ts";
import { debianPackages, withPackages } from "#scripts/images/bill.ts";
import { clientImage } from "#scripts/images/client.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";
import { builtWheel } from "#server/launchers/local/wheel.ts";

const cluster = testCluster();
const machine = clusterAt();
const NAMESPACE = "engine";
const REGISTRY = registryAt(5001);
/** The base, as it lies in the registry of the tests. */
const BASE = `${REGISTRY}/debian`;

let folder: string;
let registry: Awaited<ReturnType<typeof startRegistry>>;

async function buildah(...words: string[]): Promise<string> {
  const storage = ["--root", path.join(folder, "root"), "--runroot", path.join(folder, "run")];
  const program = ["--storage-driver", "vfs", ...storage, ...words];
  return (await promisify(execFile)("buildah", program, { maxBuffer: 1 << 24 })).stdout.trim();
}
const access = ["--tls-verify=false", "--creds", `${LOGIN.user}:${LOGIN.password}`];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-engine-"));
  registry = await startRegistry(machine, REGISTRY);
  await makeNamespace(machine, NAMESPACE);
  await cluster.objects.create(registrySecret(REGISTRY, "registry", NAMESPACE));
});
afterAll(async () => {
  await kubectl(machine, "delete", "namespace", NAMESPACE, "--wait=false");
  await registry?.stop();
  await rm(folder, { recursive: true, force: true });
});

it("builds the client's image upon a base by its digest, with labels, user and bill, and a pod runs it", async () => {
  const digest = await registry.push(PAUSE_IMAGE, `${BASE}:1`);
  const wheel = await builtWheel(path.resolve(".sluice/cluster"));
  const context = path.join(folder, "client");
  const told = await writeContext(await clientImage(process.cwd(), wheel ?? ""), context);
  const base = ["--build-arg", `BASE_NAME=${BASE}`, "--build-arg", `BASE_DIGEST=${digest}`];
  const image = `${REGISTRY}/sluice/client:engine`;
  // What the base has already is not fetched again: no network is needed.
  await buildah("build", "--isolation", "chroot", ...access, ...told, ...base, "--tag", image, context);

  const container = await buildah("from", image);
  const { OCIv1: made } = JSON.parse(await buildah("inspect", container)) as {
    OCIv1: { config: { User: string; Labels: Record<string, string>; Entrypoint: string[] } };
  };
  expect(made.config).toMatchObject({ User: "65532:65532", Entrypoint: ["/opt/sluice/bin/sluice"] });
  expect(made.config.Labels).toMatchObject({
    "org.opencontainers.image.title": "Sluice: client",
    "org.opencontainers.image.version": told[1]?.replace("VERSION=", ""),
    "org.opencontainers.image.base.digest": digest,
  });

  const layers = await readFile(path.join(context, "layers.cdx.json"), "utf8");
  const document = withPackages(layers, await debianPackages(await buildah("mount", container)));
  const { components } = JSON.parse(document) as { components: { purl: string; name: string; licenses?: unknown }[] };
  expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(["libc6", "openssl", "rustls", "ring"]));
  expect(components.filter(({ licenses }) => licenses === undefined).map(({ purl }) => purl)).toEqual([]);

  await buildah("push", ...access, image, `docker://${image}`);
  const pod: V1Pod & { spec: object } = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "client", namespace: NAMESPACE } },
    spec: {
      restartPolicy: "Never",
      imagePullSecrets: [{ name: "registry" }],
      containers: [{ name: "client", image, args: ["--version"], securityContext: { runAsNonRoot: true } }],
    },
  };
  await cluster.objects.create(pod);
  await expect
    .poll(
      async () =>
        (await cluster.objects.read<V1Pod>({ ...pod, metadata: { name: "client", namespace: NAMESPACE } })).status
          ?.phase,
      {
        timeout: 120_000,
      },
    )
    .toBe("Succeeded");
  expect(await kubectl(machine, "logs", "--namespace", NAMESPACE, "client")).toMatch(/^sluice \d/);
});
