/**
 * Everything that the cluster tests need and that can be kept, without a cluster: packages of the distribution, programs
 * built from Go modules, the base of the images, packages of environments, and images whose programs are built. It mostly
 * waits for the network, so it can run beside other suites. Each part is kept by the hash of what decides its content.
 */
import { setPriority } from "node:os";
import { buildKubernetes } from "#scripts/cluster/build.ts";
import { buildGoProgram } from "#scripts/cluster/go-program.ts";
import { buildHelm } from "#scripts/cluster/helm.ts";
import { prepareBaseImages, prepareEnvironments, prepareImages } from "#scripts/cluster/images.ts";
import { installPackages, whenFree } from "#scripts/cluster/machine.ts";
import { installChromium } from "#scripts/lib/chromium.ts";

type Say = (line: string) => void;

/** Lower than the suites beside it; what it starts inherits it. */
const NICENESS = 10;

/** Programs of the tests that need the module proxy. */
export async function buildPrograms(root: string, say: Say): Promise<string> {
  const helm = await buildHelm(say);
  for (const name of ["policies", "buckets"] as const) await buildGoProgram(root, name, say);
  return helm;
}

/** Prepares what is missing; throws the first failure once everything else is done. */
export async function prepare(root: string, say: Say): Promise<void> {
  setPriority(NICENESS);
  const step = async (name: string, work: () => Promise<unknown>) => {
    const began = Date.now();
    await work();
    say(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
  };
  const results = await Promise.allSettled([
    (async () => {
      await step("packages of the distribution", () => installPackages(say));
      await step("base image", () => prepareBaseImages(root, say));
      await step("Chromium", () => whenFree(() => installChromium(say)));
    })(),
    (async () => {
      await step("Kubernetes", () => buildKubernetes(say));
      await step("Helm and the tests' programs", () => buildPrograms(root, say));
    })(),
    step("packages of environments", () => prepareEnvironments(root)),
  ]);
  for (const result of results) if (result.status === "rejected") throw result.reason;
  await step("images", () => prepareImages(root, say));
}
