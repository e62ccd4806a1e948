/**
 * A real Kubernetes on this machine, for tests: API server, controller manager, scheduler, kubelet, containerd.
 *
 *   npm run test:cluster                 brings one up (or takes the one that runs), tests there, and ends it
 *   npm run test:cluster -- test pulls   the same with those test files alone whose names have that in them
 *   npm run test:cluster -- up           brings one up and leaves it; prints how to talk to it
 *   npm run test:cluster -- down         ends it
 */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { buildKubernetes } from "#scripts/cluster/build.ts";
import { bringDown, bringUp, isUp } from "#scripts/cluster/cluster.ts";
import { buildGoProgram } from "#scripts/cluster/go-program.ts";
import { buildHelm } from "#scripts/cluster/helm.ts";
import { loadImages } from "#scripts/cluster/images.ts";
import { checkDisk, installPackages, whyNot } from "#scripts/cluster/machine.ts";
import { type Cluster, clusterAt } from "#scripts/cluster/place.ts";
import { runClusterTests } from "#scripts/cluster/test.ts";
import { installChromium } from "#scripts/lib/chromium.ts";
import { CLUSTER_RESULT_FILE } from "#scripts/test/result.ts";

const root = process.cwd();
const out = path.join(root, ".sluice", "test");
const started = Date.now();
const say = (line: string) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);

const [command = "test", ...files] = process.argv.slice(2);
if (!["test", "up", "down"].includes(command)) {
  console.error(`${command}: not known. There are: test (default), up, down.`);
  process.exit(2);
}

const reason = whyNot();
if (reason !== undefined) {
  // Nothing failed: this machine is not one that can run a kubelet.
  console.log(`The cluster tests were skipped: ${reason}.`);
  await tell({ passed: 0, failed: 0, skipped: 1 });
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
  await installChromium(say);
  const helm = await buildHelm(say);
  for (const name of ["policies", "buckets"] as const) await buildGoProgram(root, name, say);
  const setting = { root, out, images, helm, files };
  let counts = await runClusterTests(cluster, setting);
  if (counts.failed > 0 && !found) {
    // Those of a file build on one another: the files in which something failed are run once more, on a new cluster.
    const { again, ...first } = counts;
    say(`${first.failed} failed; once more: ${again.files.join(", ") || "all"}`);
    await bringDown(cluster);
    await up(cluster);
    await loadImages(cluster, { root, say });
    counts = await runClusterTests(cluster, { ...setting, files: again.files.length > 0 ? again.files : files });
    if (again.files.length > 0) counts.passed += first.passed - again.passed;
    if (counts.failed === 0) console.log("Flaky: what failed at first is named above.");
  }
  const { passed, failed } = counts;
  code = failed === 0 && passed > 0 ? 0 : 1;
  if (!found) await bringDown(cluster);
  await tell({ passed, failed });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (!found) await bringDown(cluster).catch((failure: unknown) => console.error(failure));
  await tell({ passed: 0, failed: 1 });
}
process.exit(code);

/** The closing line, and for `.ci/run` a file with the same. */
async function tell({ passed, failed, skipped }: { passed: number; failed: number; skipped?: number }): Promise<void> {
  await mkdir(out, { recursive: true });
  await writeFile(CLUSTER_RESULT_FILE, JSON.stringify({ passed, failed }));
  console.log(`\n${passed} passed, ${failed} failed${skipped === undefined ? "" : `, ${skipped} skipped`}`);
}

async function up(wanted: Cluster): Promise<void> {
  await buildKubernetes(say);
  // What a run that was killed left behind.
  await bringDown(wanted);
  await checkDisk(path.dirname(wanted.dir));
  await bringUp(wanted, say);
  say("The node is ready");
}
