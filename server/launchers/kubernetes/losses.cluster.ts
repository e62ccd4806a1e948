/** What takes a workspace away on a real cluster, or keeps it from coming: each is told with what to do. */
import type { KubernetesObject } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { DatasetSource } from "#server/contracts/dataset.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { register } from "#server/services/dataset/register.ts";
import { create } from "#server/services/workspace/create.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { namespaceOf } from "./objects.ts";
import { type Installation, SMALL, smallSettings, startInstallation, testCluster } from "./testing.ts";

const cluster = testCluster();
const settings = smallSettings(cluster, "losses", {
  environments: {
    "cuda-python": { image: cluster.workspaceImage, size: "narrow", pull: "Never" },
    "no-memory": { image: cluster.workspaceImage, size: "too-narrow", pull: "Never" },
  },
  sizes: {
    // All of it requested: its processes are then no likelier than others to be ended for memory (see TAKE_ALL).
    // No more than that, because other files' pods ask for processors at the same time.
    narrow: { cpu: { request: "600m", limit: "600m" }, memory: { request: "512Mi", limit: "512Mi" } },
    // Enough for a shell, and too little for JupyterLab.
    "too-narrow": { cpu: { request: "100m", limit: "2" }, memory: { request: "40Mi", limit: "40Mi" } },
    small: SMALL,
  },
});
/** The settings for workspaces that never run. */
const light = {
  ...settings,
  environments: {
    ...settings.environments,
    "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" as const },
  },
};
const POLL = { timeout: 120_000, interval: 200 };

let installation: Installation;
let first: string;
beforeAll(async () => {
  const database = await useTestDatabase({ max: 10 });
  // No size is offered: a pod has what the settings give its environment.
  await database.sql`delete from workspace_sizes`;
  installation = await startInstallation(database, cluster, { settings, homes: 5 });
});
afterAll(async () => await installation?.stop());

const told = async (id: string) => await installation.told(id);

/** A notebook that takes memory until nothing is left. Where only one process is ended for it, that is the server. */
const TAKE_ALL = `import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid():
        open(f"/proc/{pid}/oom_score_adj", "w").write("1000")
taken = []
while True:
    taken.append(os.urandom(2**24))`;

it("tells who runs out of memory what happened, when, and what helps, and goes on with the files", async () => {
  first = await installation.launch("first");
  await installation.observed(first, "running$");
  await installation.inNotebook(first, 'open("/home/user/kept.txt", "w").write("still here")');
  await expect(installation.inNotebook(first, TAKE_ALL)).rejects.toThrow();
  await expect
    .poll(() => told(first), POLL)
    .toMatch(
      /needed more memory than its size has \(512Mi\): it was ended at \S+ \S+ UTC, and started again\. .* Choose a larger size, or load less at once\./,
    );
  const kept = async () =>
    await installation.inNotebook(first, 'print(open("/home/user/kept.txt").read())').catch(String);
  await expect.poll(kept, POLL).toBe("still here");
  await installation.observed(first, "running$");
}, 400_000);

it("says so of a workspace whose size has too little memory to start at all", async () => {
  const id = await installation.launch("too narrow", "no-memory");
  await installation.observed(
    id,
    "failed: The workspace did not start. The workspace needed more memory than its size has \\(40Mi\\) and was ended. Choose a larger size",
  );
});

it("says of one whose node ended it for a full /tmp what was full, and Start brings it back with its files", async () => {
  await installation.inNotebook(
    first,
    `import os
os.posix_fallocate(os.open("/tmp/large", os.O_CREAT | os.O_WRONLY), 0, 4352 * 2**20)`,
  );
  await installation.observed(
    first,
    "failed: There was more in /tmp than the 4Gi that fit there, and the workspace was ended. Start brings it back with /tmp empty; keep large files in the home folder",
  );
  await start(installation.world.member.ctx, { id: first });
  await installation.observed(first, "running$");
  expect(
    await installation.inNotebook(
      first,
      'import os; print(open("/home/user/kept.txt").read(), os.path.exists("/tmp/large"))',
    ),
  ).toBe("still here False");
}, 400_000);

it("names the volume that never comes, and what is said of it", async () => {
  const unprovided = {
    ...{ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "unprovided" } },
    ...{ provisioner: "storage.example/none", volumeBindingMode: "Immediate" },
  };
  await cluster.objects.create(unprovided);
  onTestFinished(async () => void (await cluster.objects.delete(unprovided)));
  await installation.restartReconciler({
    ...light,
    home: { size: "1Gi", storageClass: "unprovided" },
    startSeconds: 10,
  });
  const homeless = await installation.launch("homeless");
  const sentence =
    "The volume for the home folder is not there yet: Waiting for a volume to be created either by the external provisioner 'storage.example/none' or manually by the system administrator. If this stays, an admin checks the storage class";
  await installation.observed(homeless, `failed: The workspace did not start. ${sentence}`);
  // It was told while it waited, too.
  expect((await told(homeless)).split(sentence).length).toBeGreaterThan(2);
  await stop(installation.world.member.ctx, { id: homeless });
});

it("names the dataset whose volume never comes", async () => {
  await installation.restartReconciler({ ...light, startSeconds: 10 });
  const namespace = namespaceOf(settings, installation.world.team);
  const claim: KubernetesObject & Record<string, unknown> = {
    ...{ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "numbers", namespace } },
    spec: { accessModes: ["ReadOnlyMany"], storageClassName: "nowhere", resources: { requests: { storage: "1Gi" } } },
  };
  const { world } = installation;
  const source = { kind: "volume", claim: "numbers" } as const;
  const dataset = await register(world.lead.ctx, { name: "numbers", teamId: world.team, source, description: "" });
  const { id } = await create(world.member.ctx, { name: "reads", image: "cuda-python", datasets: [dataset.id] });
  installation.made.push(id);
  await installation.observed(
    id,
    `failed: The workspace did not start. The volume claim numbers for the dataset numbers is not in the namespace ${namespace}. Ask an admin to put it there`,
  );
  await cluster.objects.create(claim);
  onTestFinished(async () => void (await cluster.objects.delete(claim)));
  await start(world.member.ctx, { id });
  await installation.observed(
    id,
    'failed: The workspace did not start. The volume for the dataset numbers is not there yet: storageclass.storage.k8s.io "nowhere" not found. If this stays, an admin checks the storage class',
  );
});

it("names the dataset whose driver the cluster does not have, and the one whose export the node cannot mount", async () => {
  await installation.restartReconciler({ ...light, startSeconds: 20 });
  const { world } = installation;
  const launch = async (name: string, source: DatasetSource) => {
    const dataset = await register(world.admin.ctx, { name, teamId: world.team, source, description: "" });
    const { id } = await create(world.member.ctx, { name, image: "cuda-python", datasets: [dataset.id] });
    installation.made.push(id);
    return id;
  };
  const attributes = { bucketName: "measured" };
  // Both wait until a start may take no longer. The export's address is one where nothing is.
  const bucket = await launch("bucket", { kind: "s3", driver: "s3.csi.example", attributes, mountOptions: [] });
  const exported = await launch("export", { kind: "nfs", server: "127.0.0.9", path: "/nothing" });
  const sentence = "The dataset bucket needs the storage driver s3.csi.example, which this cluster does not have.";
  await expect.poll(() => told(bucket), POLL).toContain(sentence);
  await installation.observed(bucket, `failed: The workspace did not start. ${sentence}`);
  await installation.observed(
    exported,
    "failed: The workspace did not start. The volume for the dataset export cannot be mounted: .*an admin checks the server that it is on",
  );
});
