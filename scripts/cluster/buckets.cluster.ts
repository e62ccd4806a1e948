/** Buckets that workspaces mount by reference: a driver that a node really has puts them there. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { KubernetesObject } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startBuckets } from "#scripts/cluster/buckets.ts";
import { halt, kubectl, makeNamespace } from "#scripts/cluster/cluster.ts";
import { goProgram } from "#scripts/cluster/go-program.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";
import { register } from "#server/services/dataset/register.ts";
import { create } from "#server/services/workspace/create.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { list as listDatasets } from "#server/services/workspace-dataset/list.ts";

const cluster = testCluster();
const machine = clusterAt();
const DRIVER = "buckets.sluice.example";
/** Where the admin keeps the keys. */
const NAMESPACE = "buckets-keys";
const settings = smallSettings(cluster, "buckets");
const driver: KubernetesObject & Record<string, unknown> = {
  ...{ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER } },
  // Nothing but a mount on the node.
  spec: { attachRequired: false },
};

let installation: Installation;
let buckets: string;

beforeAll(async () => {
  buckets = await startBuckets(machine, await goProgram(process.cwd(), "buckets"), DRIVER);
  await mkdir(path.join(buckets, "measured"), { recursive: true, mode: 0o777 });
  await writeFile(path.join(buckets, "measured.key"), "opens");
  await writeFile(path.join(buckets, "measured", "numbers.txt"), "1 2 3");
  await cluster.objects.create({ ...driver });
  await makeNamespace(machine, NAMESPACE);
  for (const [name, key] of [
    ["right", "opens"],
    ["wrong", "other"],
  ])
    await kubectl(
      machine,
      "create",
      "secret",
      "generic",
      name ?? "",
      "--namespace",
      NAMESPACE,
      `--from-literal=key=${key}`,
    );
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 2 });
});
afterAll(async () => {
  await installation?.stop();
  await cluster.objects.delete({ ...driver }).catch(() => undefined);
  await halt(machine, "buckets");
  await kubectl(machine, "delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false");
});

/** Launches a workspace with that bucket, opened by the key of that name. */
async function launchWith(name: string, secret: string): Promise<string> {
  const { world, made } = installation;
  const source = {
    ...{ kind: "s3" as const, driver: DRIVER, attributes: { bucketName: "measured" } },
    ...{ mountOptions: ["allow-other", "uid=1000"], secret: { namespace: NAMESPACE, name: secret } },
  };
  const dataset = await register(world.admin.ctx, { name, teamId: world.team, source, description: "" });
  const { id } = await create(world.member.ctx, { name, image: "cuda-python", datasets: [dataset.id] });
  made.push(id);
  return id;
}
const log = async () => await readFile(path.join(machine.dir, "log", "buckets"), "utf8");

it("mounts a bucket for reading, by what its driver is told, with the keys of a secret that the workspace does not see", async () => {
  const id = await launchWith("measured", "right");
  await installation.observed(id, "running$");
  const read = `import pathlib
folder = pathlib.Path("/home/user/datasets/measured")
print((folder / "numbers.txt").read_text())
try:
    (folder / "own.txt").write_text("mine")
except OSError as error:
    print(error.strerror)`;
  expect(await installation.inNotebook(id, read)).toBe("1 2 3\nRead-only file system");
  expect(await log()).toContain("mounted measured with allow-other,uid=1000");
  // Nobody else reaches its files: the workspace's own server has read them ahead.
  const readAhead = async () => {
    const { datasets } = await listDatasets(installation.world.member.ctx, { id });
    return datasets[0]?.prefetch;
  };
  await expect.poll(readAhead, { timeout: 120_000 }).toMatchObject({ state: "done", bytes: 5, totalBytes: 5 });
  const mounts = async () => {
    const pid = (await readFile(path.join(machine.dir, "pid", "containerd"), "utf8")).match(/"pid":(\d+)/)?.[1];
    return (await readFile(`/proc/${pid}/mounts`, "utf8")).includes("kubernetes.io~csi");
  };
  expect(await mounts()).toBe(true);
  await remove(installation.world.member.ctx, { id });
  await installation.observed(id, "stopped");
  await expect.poll(mounts, { timeout: 120_000 }).toBe(false);
  expect(await readFile(path.join(buckets, "measured", "numbers.txt"), "utf8")).toBe("1 2 3");
});

it("says what the driver says of a bucket that it does not mount", async () => {
  await installation.restartReconciler({ ...settings, startSeconds: 20 });
  const id = await launchWith("closed", "wrong");
  await installation.observed(
    id,
    "failed: The workspace did not start. The volume for the dataset closed cannot be mounted: .*the key does not open the bucket",
  );
});
