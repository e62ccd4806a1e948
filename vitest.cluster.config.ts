import path from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that change the cluster, or the first node, for every pod: they run after the others, one at a time.
 * A file that is not named here runs beside others. It leaves the first node as it is and gives its own names to
 * everything that is not in a namespace.
 */
const ALONE = [
  // Ends the API server.
  "scripts/cluster/faults.cluster.ts",
  // Enforces NetworkPolicies for all connections of the first node.
  "scripts/cluster/policies.cluster.ts",
  // Taints the first node.
  "server/launchers/kubernetes/placement.cluster.ts",
  // Fills the first node, and expects no other node.
  "server/launchers/kubernetes/room.cluster.ts",
];

/** The files that take longest, which start first. */
const LONGEST = [
  "scripts/cluster/chart.cluster.ts",
  "scripts/cluster/chart-upgrade.cluster.ts",
  "scripts/cluster/nodes.cluster.ts",
  "scripts/cluster/gpu-node.cluster.ts",
  "server/launchers/kubernetes/kubernetes.cluster.ts",
  "scripts/cluster/maintenance.cluster.ts",
  "server/launchers/kubernetes/losses.cluster.ts",
  "scripts/cluster/pulls.cluster.ts",
  "scripts/cluster/external.cluster.ts",
  "scripts/images/workspaces.cluster.ts",
  "scripts/cluster/chart-values.cluster.ts",
  "scripts/cluster/buckets.cluster.ts",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.indexOf(path.relative(import.meta.dirname, moduleId));
      return place === -1 ? LONGEST.length : place;
    };
    // The sort is stable, so the other files keep the order that Vitest gives them.
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

const COMMON = {
  // Longer than any poll in a test: a limit is for a failure, not for a slow machine.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  env: { SLUICE_LOG_LEVEL: "silent", SLUICE_RUNNING_WORKSPACES: "1000" },
};

/** Tests on a real Kubernetes: `npm run test:cluster` starts it, and runs this inside its network. */
export default defineConfig({
  test: {
    // One PostgreSQL server for both projects.
    globalSetup: ["server/db/testing-global-setup.ts"],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...COMMON,
          name: "shared",
          include: ["{server,scripts}/**/*.cluster.ts"],
          exclude: ALONE,
          // On two cores, more files at once starve the cluster itself: its nodes unpack images and start pods.
          maxWorkers: Number(process.env.SLUICE_TEST_CLUSTER_WORKERS ?? 2),
          sequence: { groupOrder: 1 },
        },
      },
      { test: { ...COMMON, name: "alone", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
  },
});
