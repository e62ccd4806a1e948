/** Runs the cluster tests inside the node's network, where API server, pods and what the tests start see one another. */
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Images } from "#scripts/cluster/images.ts";
import type { Cluster } from "#scripts/cluster/place.ts";
import { run } from "#scripts/lib/processes.ts";
import { LIMIT_VARIABLE, STILL_RUNNING } from "#scripts/test/running-tests.ts";
import { type FileOutcome, fileOutcomes, runOutcome } from "#scripts/test/vitest-report.ts";

/** What the tests are told about the cluster, as environment variables. */
export const CLUSTER_VARIABLES = {
  address: "SLUICE_TEST_CLUSTER_ADDRESS",
  folder: "SLUICE_TEST_CLUSTER_FOLDER",
  kubeconfig: "SLUICE_TEST_CLUSTER_KUBECONFIG",
  workspaceImages: "SLUICE_TEST_CLUSTER_WORKSPACE_IMAGES",
  controlPlaneImage: "SLUICE_TEST_CLUSTER_CONTROL_PLANE_IMAGE",
  gpudImage: "SLUICE_TEST_CLUSTER_GPUD_IMAGE",
  clientImage: "SLUICE_TEST_CLUSTER_CLIENT_IMAGE",
  bareImage: "SLUICE_TEST_CLUSTER_BARE_IMAGE",
  imageFiles: "SLUICE_TEST_CLUSTER_IMAGE_FILES",
  helm: "SLUICE_TEST_CLUSTER_HELM",
} as const;

/** The same with their values. */
export function clusterVariables(cluster: Cluster, images: Images, helm: string): Record<string, string> {
  return {
    [CLUSTER_VARIABLES.address]: cluster.address,
    [CLUSTER_VARIABLES.folder]: cluster.dir,
    [CLUSTER_VARIABLES.kubeconfig]: cluster.kubeconfig,
    [CLUSTER_VARIABLES.workspaceImages]: JSON.stringify(images.workspaces),
    [CLUSTER_VARIABLES.controlPlaneImage]: images.controlPlane,
    [CLUSTER_VARIABLES.gpudImage]: images.gpud,
    [CLUSTER_VARIABLES.clientImage]: images.client,
    [CLUSTER_VARIABLES.bareImage]: images.bare,
    [CLUSTER_VARIABLES.imageFiles]: JSON.stringify(images.files),
    [CLUSTER_VARIABLES.helm]: helm,
  };
}

/** `files`: parts of the names of those to run, none means all; `report`: the name of Vitest's report in `out`. */
type Setting = {
  root: string;
  out: string;
  images: Images;
  helm: string;
  files: readonly string[];
  report: string;
};

/** `hung`: the tests that were running when the limit for the whole was reached. */
export type Outcome = { passed: number; failed: number; files: FileOutcome[]; hung: string[]; failures: string[] };

/** Seconds for all tests: three times what they take. */
const LIMIT_S = 2_700;
/** Seconds after the limit for Vitest to name the tests that run, and to end. */
const LAST_WORDS_S = 60;

export async function runClusterTests(
  cluster: Cluster,
  { root, out, images, helm, files, report }: Setting,
): Promise<Outcome> {
  await mkdir(out, { recursive: true });
  const file = path.join(out, report);
  const reporters = ["--reporter=verbose", "--reporter=./scripts/test/running-tests.ts"];
  // None from before, which would be taken for this run's.
  await rm(file, { force: true });
  const words = [
    ...["node_modules/vitest/vitest.mjs", "run", "--config", "vitest.cluster.config.ts"],
    ...[...reporters, "--reporter=json", `--outputFile.json=${file}`, ...files],
  ];
  const hung: string[] = [];
  const problem = await run("nsenter", [`--net=${cluster.netns}`, process.execPath, ...words], {
    cwd: root,
    env: {
      ...process.env,
      ...clusterVariables(cluster, images, helm),
      [LIMIT_VARIABLE]: String(LIMIT_S),
    },
    limit: LIMIT_S + LAST_WORDS_S,
    onLine: (line) => {
      console.log(line);
      if (line.startsWith(STILL_RUNNING)) hung.push(line.slice(STILL_RUNNING.length));
    },
  }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  const outcomes = fileOutcomes(file);
  if (outcomes.length === 0 && hung.length === 0)
    throw problem ?? new Error("The cluster tests left no report. Look at the lines above for the reason.");
  return { ...runOutcome(outcomes, { hung, problem: problem?.message }), files: outcomes, hung };
}
