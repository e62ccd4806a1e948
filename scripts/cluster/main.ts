/**
 * A real Kubernetes on this machine, for tests: API server, controller manager, scheduler, kubelet, containerd.
 *
 *   npm run test:cluster              brings one up (or takes the one that runs), tests there, and ends it
 *   npm run test:cluster -- up        brings one up and leaves it; prints how to talk to it
 *   npm run test:cluster -- down      ends it
 */
import path from "node:path";
import { buildKubernetes } from "#scripts/cluster/build.ts";
import { bringDown, bringUp, isUp } from "#scripts/cluster/cluster.ts";
import { loadImages } from "#scripts/cluster/images.ts";
import { installPackages, whyNot } from "#scripts/cluster/machine.ts";
import { type Cluster, clusterAt } from "#scripts/cluster/place.ts";
import { runClusterTests } from "#scripts/cluster/test.ts";

const root = process.cwd();
const out = path.join(root, ".sluice", "test");
const started = Date.now();
const say = (line: string) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);

const [command = "test"] = process.argv.slice(2);
if (!["test", "up", "down"].includes(command)) {
  console.error(`${command}: not known. There are: test (default), up, down.`);
  process.exit(2);
}

const reason = whyNot();
if (reason !== undefined) {
  // Nothing failed: this machine is not one that can run a kubelet.
  console.log(`The cluster tests were skipped: ${reason}.`);
  console.log("0 passed, 0 failed, 1 skipped");
  process.exit(0);
}

const cluster = clusterAt();
if (command === "down") {
  await bringDown(cluster);
  say("The cluster is down");
  process.exit(0);
}

let code = 1;
const found = await isUp(cluster);
try {
  if (!found) await installPackages(say);
  if (!found) await up(cluster);
  else say("Taking the cluster that runs already");
  const images = await loadImages(cluster, { root, say });
  if (command === "up") {
    say("The cluster is up. Talk to it with:");
    console.log(
      `  nsenter --net=${cluster.netns} ${cluster.bin}/kubectl --kubeconfig ${cluster.kubeconfig} get pods -A`,
    );
    process.exit(0);
  }
  const { passed, failed } = await runClusterTests(cluster, { root, out, images });
  code = failed === 0 && passed > 0 ? 0 : 1;
  if (!found) await bringDown(cluster);
  console.log(`\n${passed} passed, ${failed} failed`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (!found) await bringDown(cluster).catch((failure: unknown) => console.error(failure));
  console.log("0 passed, 1 failed");
}
process.exit(code);

async function up(wanted: Cluster): Promise<void> {
  await buildKubernetes(say);
  // What a run that was killed left behind.
  await bringDown(wanted);
  await bringUp(wanted, say);
  say("The node is ready");
}
