/**
 * Workspaces as pods of a real Kubernetes on this machine, which is brought up for it and ended. Each is launched at the
 * portal and followed there until its first notebook kernel has computed: one after another and twenty at once, with the
 * image present; what the broker asks the API server for in an hour in which they run and nobody wants anything; and 500
 * on nodes that kwok imitates, where pods are ready at once, run nothing, and one server answers for all.
 */
import path from "node:path";
import { buildKubernetes } from "#scripts/cluster/build.ts";
import { bringDown, bringUp } from "#scripts/cluster/cluster.ts";
import { buildHelm } from "#scripts/cluster/helm.ts";
import { loadImages } from "#scripts/cluster/images.ts";
import { buildKwok } from "#scripts/cluster/kwok.ts";
import { installPackages, whyNot } from "#scripts/cluster/machine.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { clusterVariables } from "#scripts/cluster/test.ts";
import { run as runProgram } from "#scripts/lib/processes.ts";

export const targets = {
  ...{ p50_s: "<= 8", burst20_p95_s: "-", requests_per_workspace_hour: "<= 2" },
  ...{ scale500_s: "-", scale500_lost: "0", broker_mb: "-" },
};

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const reason = whyNot();
  if (reason !== undefined) throw new Error(`No cluster can run here: ${reason}.`);
  const say = (line: string) => console.log(`  ${line}`);
  const root = path.resolve(import.meta.dirname, "..");
  const cluster = clusterAt();
  await installPackages(say);
  await buildKubernetes(say);
  const kwok = await buildKwok(say);
  const helm = await buildHelm(say);
  await bringDown(cluster);
  try {
    await bringUp(cluster, say);
    const images = await loadImages(cluster, { root, say });
    const variables = clusterVariables(cluster, images, helm);
    const inside = [process.execPath, path.join(root, "bench/kubernetes/inside.ts"), kwok.program, kwok.stages];
    let metrics: Record<string, number> | undefined;
    await runProgram("nsenter", [`--net=${cluster.netns}`, ...inside], {
      cwd: root,
      env: { ...process.env, ...variables, SLUICE_LOG_LEVEL: "warn" },
      onLine: (line) => {
        if (line.startsWith('{"metrics"')) ({ metrics } = JSON.parse(line) as { metrics: Record<string, number> });
        else say(line);
      },
    });
    if (metrics === undefined) throw new Error("The measurement inside the cluster's network told nothing.");
    return { metrics };
  } finally {
    await bringDown(cluster);
  }
}
