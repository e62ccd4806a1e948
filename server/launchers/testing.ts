/** For tests and benchmarks: what the reconciler would ask a launcher for. */
import { newCode, newId, newSecret } from "#server/ids.ts";
import type { WorkspaceSpec } from "./launcher.ts";

/** The first start of a new workspace, with what a test wants different. */
export function aWorkspaceSpec(different: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return {
    id: newId("ws"),
    teamId: "team-of-tests",
    generation: 1,
    environment: "cuda-python",
    serverToken: newCode(),
    credential: newSecret("slw"),
    gpuType: "soft",
    brokerUrl: "http://127.0.0.1:3001",
    portalUrl: "http://localhost:3000",
    publicUrl: "http://localhost:3002",
    variables: {},
    datasets: [],
    allowUnisolated: false,
    ...different,
  };
}
