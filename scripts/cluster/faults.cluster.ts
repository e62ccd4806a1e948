/** What happens to workspaces while a real cluster's API server is away. Other files' pods would be without it as well. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { halt, resume } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const machine = clusterAt();
const settings = smallSettings(cluster, "faults", {
  // The cluster's own parts come back to their work only some time after the API server.
  startSeconds: 240,
});
const POLL = { timeout: 120_000, interval: 200 };

let installation: Installation;
let first: string;
beforeAll(async () => {
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 2 });
});
afterAll(async () => await installation?.stop());

const API_SERVER = "kube-apiserver";
let isAway = false;
async function giveBack(): Promise<void> {
  if (isAway) await resume(machine, API_SERVER);
  isAway = false;
}
afterEach(giveBack);

const COMPUTE = `%gpu attach 0.5
import time
import numpy as np
from numba import cuda
@cuda.jit
def increase(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1
d = cuda.to_device(np.zeros(1000))
rounds, end = 0, time.time() + 15
while time.time() < end:
    increase[8, 128](d)
    cuda.synchronize()
    rounds += 1
print("sum", int(d.copy_to_host().sum()) == rounds * 1000)
%gpu detach`;

it("launches", async () => {
  first = await installation.launch("first");
  await installation.observed(first, "running$");
});

it("goes on while the API server is away for 30 s: notebooks compute on their GPU, and a launch waits for it", async () => {
  await halt(machine, API_SERVER);
  isAway = true;
  const since = Date.now();
  const computing = installation.inNotebook(first, COMPUTE);
  const second = await installation.launch("second");
  await expect.poll(() => installation.told(second), POLL).toContain("The cluster does not answer");
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  expect(await computing).toContain("sum True");
  await sleep(30_000 - (Date.now() - since));
  expect((await installation.row(second)).observed).toBe("starting");
  await giveBack();
  await installation.observed(second, "running$", 200_000);
  await installation.observed(first, "running$");
  expect((await installation.row(first)).generation).toBe(1);
}, 400_000);
