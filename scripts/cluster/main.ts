/**
 * A real Kubernetes on this machine, for tests: API server, controller manager, scheduler, kubelet, containerd.
 *
 *   npm run test:cluster                 brings one up (or takes the one that runs), tests there, and ends it
 *   npm run test:cluster -- test pulls   the same with those test files alone whose names have that in them
 *   npm run test:cluster -- up           brings one up and leaves it; prints how to talk to it
 *   npm run test:cluster -- down         ends it
 *   npm run test:cluster -- prepare      brings none up; makes everything that can be kept, beside other work
 */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { buildKubernetes } from "#scripts/cluster/build.ts";
import { bringDown, bringUp, isUp } from "#scripts/cluster/cluster.ts";
import { type Images, loadInto, makeImages } from "#scripts/cluster/images.ts";
import { checkDisk, installPackages, whyNot } from "#scripts/cluster/machine.ts";
import { type Cluster, clusterAt } from "#scripts/cluster/place.ts";
import { buildPrograms, prepare } from "#scripts/cluster/prepare.ts";
import { runClusterTests } from "#scripts/cluster/test.ts";
import { installChromium } from "#scripts/lib/chromium.ts";
import { CLUSTER_RESULT_FILE, failureOf } from "#scripts/test/result.ts";
import { type FileOutcome, flakyTests } from "#scripts/test/vitest-report.ts";

const root = process.cwd();
const out = path.join(root, ".sluice", "test");
const started = Date.now();
const say = (line: string) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);

const [command = "test", ...files] = process.argv.slice(2);
if (!["test", "up", "down", "prepare"].includes(command)) {
  console.error(`${command}: not known. There are: test (default), up, down, prepare.`);
  process.exit(2);
}

/** What `CLUSTER_RESULT_FILE` holds; `flaky` and `hung` name tests, `failures` say why, `files` is for finding out what takes long. */
type Told = {
  passed: number;
  failed: number;
  /** Why there is no cluster. */
  skipped?: string;
  flaky?: string[];
  hung?: string[];
  failures?: string[];
  files?: FileOutcome[];
};

const reason = whyNot();
if (reason !== undefined) {
  // Nothing failed: this machine is not one that can run a kubelet.
  console.log(`The cluster tests were skipped: ${reason}.`);
  if (command !== "prepare") await tell({ passed: 0, failed: 0, skipped: reason });
  process.exit(0);
}

const cluster = clusterAt();
if (command === "down") {
  await bringDown(cluster);
  say("The cluster is down");
  process.exit(0);
}
if (command === "prepare") {
  await prepare(root, say);
  process.exit(0);
}

let code = 1;
const found = await isUp(cluster);
try {
  if (!found) await installPackages(say);
  else say("Taking the cluster that runs already");
  // A cluster takes its time to come up, and so do the images.
  const [images] = await allDone([makeImages({ root, say }), found ? undefined : up(cluster)]);
  await loadAll(images);
  if (command === "up") {
    say("The cluster is up. Talk to it with:");
    console.log(
      `  nsenter --net=${cluster.netns} ${cluster.bin}/kubectl --kubeconfig ${cluster.kubeconfig} get pods -A`,
    );
    process.exit(0);
  }
  await installChromium(say);
  const helm = await buildPrograms(root, say);
  const setting = { root, out, images, helm };
  const first = await runClusterTests(cluster, { ...setting, files, report: "cluster.json" });
  let { passed, failed } = first;
  let flaky: string[] = [];
  let { failures } = first;
  const broken = first.files.filter(({ ok }) => !ok);
  if (failed > 0 && !found && first.hung.length === 0) {
    // The tests of a file build on one another: the files in which something failed run once more, on a new cluster.
    const names = broken.map(({ file }) => file);
    say(`${failed} failed; once more: ${names.join(", ") || "all"}`);
    await bringDown(cluster);
    await up(cluster);
    await loadAll(images);
    const more = { files: names.length > 0 ? names : files, report: "cluster-again.json" };
    const again = await runClusterTests(cluster, { ...setting, ...more });
    flaky = names.length > 0 ? flakyTests(first.files, again.files) : ["cluster: outside of all files"];
    failed = again.failed;
    failures = again.failures;
    const kept = names.length > 0 ? passed - broken.reduce((sum, one) => sum + one.passed, 0) : 0;
    passed = kept + again.passed;
    first.hung.push(...again.hung);
  }
  code = failed === 0 && passed > 0 ? 0 : 1;
  if (!found) await bringDown(cluster);
  for (const { file, seconds } of first.files) console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`);
  for (const name of flaky) console.log(`Flaky: ${name}`);
  await tell({ passed, failed, flaky, hung: first.hung, failures, files: first.files });
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(why);
  if (!found) await bringDown(cluster).catch((failure: unknown) => console.error(failure));
  await tell({ passed: 0, failed: 1, failures: [failureOf("outside of all tests", why)] });
}
process.exit(code);

/** The closing line, and for `.ci/run` a file with the same and more. */
async function tell(told: Told): Promise<void> {
  const { passed, failed, skipped } = told;
  await mkdir(out, { recursive: true });
  await writeFile(CLUSTER_RESULT_FILE, JSON.stringify({ flaky: [], hung: [], failures: [], files: [], ...told }));
  console.log(`\n${passed} passed, ${failed} failed${skipped === undefined ? "" : ", 1 skipped"}`);
}

async function up(wanted: Cluster): Promise<void> {
  await buildKubernetes(say);
  // What a run that was killed left behind.
  await bringDown(wanted);
  await checkDisk(path.dirname(wanted.dir));
  await bringUp(wanted, say);
  say("The node is ready");
}

async function loadAll({ files: all }: Images): Promise<void> {
  await loadInto(cluster, all, Object.keys(all), say);
  say("The node has all images");
}

/** Like `Promise.all`, but settles when everything has: a cluster that is half up cannot be brought down. */
async function allDone<T extends readonly unknown[]>(
  work: [...T],
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  await Promise.allSettled(work);
  return await Promise.all(work);
}
