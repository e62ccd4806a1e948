/** A workspace for component tests. */
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** A running workspace of its own owner, without a GPU, with what the test says of it. */
export function aWorkspace(own: Partial<WorkspaceView>): WorkspaceView {
  return {
    id: "ws-1",
    name: "analysis",
    owner: { id: "usr-1", name: "Ada" },
    team: { id: "team-1", name: "demo" },
    role: "owner",
    image: { id: "img-1", name: "cuda-python", title: "CUDA Python", version: "1" },
    update: null,
    launcher: "local",
    size: null,
    defaultAmount: "0.5",
    gpuType: "soft",
    gpuPolicy: "ask",
    desired: "running",
    observed: "running",
    message: null,
    generation: 1,
    createdAt: "2026-01-01T00:00:00Z",
    startedAt: "2026-01-01T00:00:00Z",
    stoppedAt: null,
    lastActivityAt: null,
    cpuMilli: null,
    memoryBytes: null,
    idleSeconds: null,
    ownIdleSeconds: null,
    stopsAt: null,
    movesAt: null,
    filesKeptDays: 7,
    leases: [],
    versions: { gpuPolicy: 1, idleLimit: 1, size: 1 },
    can: {
      ...{ open: true, start: false, stop: true, restart: true, duplicate: true },
      ...{ work: true, change: true, unshare: true, remove: true },
    },
    ...own,
  };
}
