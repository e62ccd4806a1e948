/** The words for what a cluster says; the inputs are what Kubernetes 1.36 writes. */
import type { V1ContainerStatus, V1Node, V1Pod, V1PodCondition, V1PodStatus } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import type { Room } from "./missing.ts";
import {
  leavingNews,
  madeAt,
  mountSentence,
  podState,
  quotaSentence,
  refusalSentence,
  restartedOf,
  silentNews,
  silentSince,
  unreadyNews,
} from "./states.ts";
import { lacksRoom, unscheduledSentence, volumeSentence } from "./unscheduled.ts";

const base: V1Pod = {
  metadata: { name: "ws-1" },
  spec: {
    nodeName: "node-1",
    nodeSelector: { pool: "notebooks" },
    containers: [
      {
        name: "workspace",
        image: "registry.example/a:1",
        resources: { requests: { cpu: "8" }, limits: { memory: "2Gi" } },
        volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
      },
    ],
  },
};
const pod = (status: V1PodStatus): V1Pod => ({ ...base, status });
const container = (state: V1ContainerStatus["state"], more: Partial<V1ContainerStatus> = {}): V1PodStatus => ({
  phase: "Pending",
  containerStatuses: [{ name: "workspace", image: "a", imageID: "", ready: false, restartCount: 0, state, ...more }],
});
const waiting = (reason: string, message = "") => pod(container({ waiting: { reason, message } }));
const unscheduled = (message: string) =>
  pod({ phase: "Pending", conditions: [condition("PodScheduled", "False", "Unschedulable", message)] });
const condition = (type: string, status: string, reason: string, message?: string): V1PodCondition => ({
  type,
  status,
  reason,
  message,
});

describe("a pod that comes up", () => {
  it("waits without words through the usual steps, and runs", () => {
    expect(podState(pod({ phase: "Pending" }))).toEqual({ kind: "waiting" });
    expect(podState(waiting("ContainerCreating"))).toEqual({ kind: "waiting" });
    // The first failure to pull may be an accident; the back-off is none.
    expect(podState(waiting("ErrImagePull", "not found"))).toEqual({ kind: "waiting" });
    expect(podState(pod({ ...container({ running: {} }), phase: "Running" }))).toEqual({ kind: "running" });
  });
});

const spoken: [string, V1Pod, "waiting" | "failed" | "ended", string][] = [
  [
    "no node has the resources",
    unscheduled(
      "0/3 nodes are available: 2 Insufficient cpu, 3 Insufficient memory. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
    ),
    "waiting",
    "No node has room for this workspace: too little CPU (it asks for 8) on 2 of 3 nodes and memory on 3 of 3 nodes. It starts when there is room; a smaller size, or a stopped workspace, helps at once.",
  ],
  ...[
    "node(s) didn't match PersistentVolume's node affinity",
    // As it was written before.
    "node(s) had volume node affinity conflict",
  ].flatMap((elsewhere): [string, V1Pod, "waiting", string][] => [
    [
      `the node of its volume is full: ${elsewhere}`,
      unscheduled(
        `0/4 nodes are available: 2 Insufficient cpu, 2 ${elsewhere}. preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.`,
      ),
      "waiting",
      "No node that can use this workspace's volumes has room for it: too little CPU (it asks for 8). It starts when there is room there; a smaller size, or a stopped workspace there, helps at once.",
    ],
    [
      `the node of its volume is gone: ${elsewhere}`,
      unscheduled(`0/2 nodes are available: 2 ${elsewhere}.`),
      "waiting",
      "No node can use the volumes of this workspace: the node where its files lie is gone, or they lie on several. It starts when that node is back; an admin knows when that will be.",
    ],
  ]),
  [
    "the node of its volume is drained",
    unscheduled(
      "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable.",
    ),
    "waiting",
    "No node that can use this workspace's volumes has room for it: nodes are being drained. It starts when there is room there; a smaller size, or a stopped workspace there, helps at once.",
  ],
  [
    "nodes are tainted, without a word by what",
    unscheduled("0/1 nodes are available: 1 node(s) had untolerated taint(s)."),
    "waiting",
    "No node has room for this workspace: nodes are kept for others. It starts when there is room; a smaller size, or a stopped workspace, helps at once.",
  ],
  [
    "no node has the labels",
    unscheduled(
      "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
    "waiting",
    "No node has room for this workspace: no node has the label pool=notebooks. It starts when there is room; a smaller size, or a stopped workspace, helps at once.",
  ],
  [
    "nodes are tainted",
    unscheduled("0/1 nodes are available: 1 node(s) had untolerated taint {gpu: only}."),
    "waiting",
    "No node has room for this workspace: nodes are kept for others (gpu: only). It starts when there is room; a smaller size, or a stopped workspace, helps at once.",
  ],
  [
    "the volume is not bound",
    unscheduled(
      "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
    "waiting",
    "The volume for the home folder or a dataset is not there yet: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. If this stays, an admin checks the storage class and its free space.",
  ],
  [
    "the image cannot be pulled",
    waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/a:1": ErrImagePull: not found'),
    "failed",
    "The image registry.example/a:1 is not in its registry. Ask an admin to check its name in the settings.",
  ],
  [
    "the registry is away for a while",
    waiting(
      "ImagePullBackOff",
      'Back-off pulling image "registry.example/a:1": ErrImagePull: dial tcp 10.0.0.1:443: connect: connection refused',
    ),
    "waiting",
    "The registry of the image registry.example/a:1 cannot be reached: dial tcp 10.0.0.1:443: connect: connection refused. It is tried again while the start lasts; if this stays, an admin checks the registry and the nodes' way to it.",
  ],
  [
    "the image must not be pulled",
    waiting("ErrImageNeverPull", 'Container image "registry.example/a:1" is not present with pull policy of Never'),
    "failed",
    'The image registry.example/a:1 cannot be pulled: Container image "registry.example/a:1" is not present with pull policy of Never. Ask an admin to check its name in the settings, and whether the cluster may read that registry.',
  ],
  [
    "a secret is missing",
    waiting("CreateContainerConfigError", 'secret "ws-1-variables" not found'),
    "failed",
    'The container cannot be made: secret "ws-1-variables" not found. Start makes everything of the workspace anew; if it fails again, tell an admin.',
  ],
  [
    "it crashes again and again",
    pod(
      container(
        { waiting: { reason: "CrashLoopBackOff" } },
        { restartCount: 2, lastState: { terminated: { exitCode: 1, reason: "Error" } } },
      ),
    ),
    "failed",
    "JupyterLab ends right after its start (3 times, last with exit code 1). Its last lines are in the log below; undo what was changed last in the home folder or its packages, or choose another environment.",
  ],
  [
    "it runs out of memory again and again",
    pod(
      container(
        { waiting: { reason: "CrashLoopBackOff" } },
        { restartCount: 2, lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } },
      ),
    ),
    "failed",
    "The workspace needed more memory than its size has (2Gi) and was ended. Choose a larger size, or load less at once.",
  ],
  [
    "it ran out of memory",
    pod({ ...container({ terminated: { exitCode: 137, reason: "OOMKilled" } }), phase: "Failed" }),
    "ended",
    "The workspace needed more memory than its size has (2Gi) and was ended. Choose a larger size, or load less at once.",
  ],
  [
    "a person shut it down",
    pod({ ...container({ terminated: { exitCode: 0 } }), phase: "Succeeded" }),
    "ended",
    "JupyterLab was shut down. Start brings it back.",
  ],
  [
    "it was evicted",
    pod({
      phase: "Failed",
      reason: "Evicted",
      message: "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 512Mi.",
    }),
    "ended",
    "The node node-1 was short of a resource and had to end this workspace: The node was low on resource: ephemeral-storage. Start brings it back, on another node if need be.",
  ],
  [
    "it filled a folder that has a limit",
    pod({
      phase: "Failed",
      reason: "Evicted",
      message: 'Usage of EmptyDir volume "tmp" exceeds the limit "4Gi". ',
    }),
    "ended",
    "There was more in /tmp than the 4Gi that fit there, and the workspace was ended. Start brings it back with /tmp empty; keep large files in the home folder.",
  ],
  ...[
    'Container workspace exceeded its local ephemeral storage limit "10Gi". ',
    "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. ",
  ].map((message): [string, V1Pod, "ended", string] => [
    `it had too much on its node's disk: ${message}`,
    pod({ phase: "Failed", reason: "Evicted", message }),
    "ended",
    "The workspace had more on its node's disk than the 10Gi that it may, and was ended. Start brings it back; keep large files in the home folder.",
  ]),
  [
    "the node is drained",
    pod({ phase: "Running", conditions: [condition("DisruptionTarget", "True", "EvictionByEvictionAPI")] }),
    "ended",
    "The node node-1 is being emptied for maintenance. Start brings the workspace back on another node.",
  ],
  [
    "a more important pod took its place",
    pod({ phase: "Running", conditions: [condition("DisruptionTarget", "True", "PreemptionByScheduler")] }),
    "ended",
    "The workspace had to make room for one with a higher priority. Start brings it back when there is room.",
  ],
];

it.each(spoken)("says what to do when %s", (_, given, kind, sentence) => {
  expect(podState(given)).toEqual({ kind, sentence });
});

describe("a pod that no node has room for", () => {
  const node = (cpu: string, more: V1Node["spec"] = {}): V1Node => ({
    ...{ metadata: { name: `with-${cpu}`, labels: { pool: "notebooks" } }, spec: more },
    status: { allocatable: { cpu, memory: "32780340Ki", pods: "110" } },
  });
  const waits = (...what: string[]) =>
    unscheduled(
      `0/2 nodes are available: ${what.map((each) => `2 ${each}`).join(", ")}. preemption: 0/2 nodes are available: 2 ${what.join(", 2 ")}.`,
    );
  const asking = (requests: Record<string, string>, ...what: string[]): V1Pod => {
    const short = waits(...what);
    return { ...short, spec: { ...short.spec, containers: [{ name: "workspace", resources: { requests } }] } };
  };
  const room = (held: Record<string, Record<string, number>>, volumes: Room["volumes"] = []): Room => ({
    taken: new Map(Object.entries(held).map(([name, of]) => [name, new Map(Object.entries(of))])),
    volumes,
  });
  const GI = 2 ** 30;

  it("hears when none is large enough, by how much, and that waiting does not help", () => {
    const cpu = waits("Insufficient cpu");
    expect(unscheduledSentence(cpu, [node("3900m"), node("6")])).toBe(
      "No node has room for this workspace: too little CPU (it asks for 8, and the largest node has 6, so 2 are missing) on 2 of 2 nodes. It cannot start like this: choose a smaller size, or ask an admin for a larger node.",
    );
    expect(unscheduledSentence(cpu, [node("7")])).toContain("the largest node has 7, so 1 is missing)");
    expect(unscheduledSentence(cpu, [node("16"), node("6")])).toContain("(it asks for 8) on 2 of 2 nodes. It starts");
    expect(unscheduledSentence(asking({ memory: "64Gi" }, "Insufficient memory"), [node("16")])).toContain(
      "(it asks for 64Gi, and the largest node has 31.2Gi, so 32.8Gi are missing)",
    );
    expect([lacksRoom(cpu, [node("6")]), lacksRoom(cpu, [node("6"), node("16")])]).toEqual([false, true]);
  });

  it("hears that it cannot start where one node has enough of this and another of that, by the one that lacks least", () => {
    const sized = (cpu: string, memory: string): V1Node => {
      const one = node(cpu);
      return { ...one, status: { allocatable: { ...one.status?.allocatable, memory } } };
    };
    const nodes = [sized("16", "8Gi"), sized("4", "64Gi")];
    const message = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.";
    const requests = { cpu: "8", memory: "32Gi" };
    const both = { ...asking(requests), status: unscheduled(message).status };
    expect(unscheduledSentence(both, nodes, room({}))).toBe(
      "No node has room for this workspace: too little CPU (it asks for 8, and the node that comes closest has 4, so 4 are missing) on 1 of 2 nodes and memory (it asks for 32Gi) on 1 of 2 nodes. It cannot start like this: choose a smaller size, or ask an admin for a larger node.",
    );
    expect(lacksRoom(waits("Insufficient cpu"), nodes)).toBe(true);
    expect(unscheduledSentence(both, [...nodes, sized("8", "32Gi")], room({}))).toContain(
      "It starts when there is room",
    );
    // The node that comes closest is drained: the scheduler does not say what it lacks.
    const drained = { ...both, status: unscheduled("0/2 nodes are available: 1 Insufficient memory.").status };
    expect(unscheduledSentence(drained, nodes)).toContain(
      "too little memory (it asks for 32Gi) on 1 of 2 nodes and CPU (it asks for 8, and the node that comes closest has 4, so 4 are missing). It cannot start",
    );
  });

  it("hears that it cannot start where no node has any of what it asks for", () => {
    const gpu = asking({ "example.com/gpu": "2" }, "Insufficient example.com/gpu");
    expect(unscheduledSentence(gpu, [node("16")])).toContain(
      "too little example.com/gpu (it asks for 2, and no node has any) on 2 of 2 nodes. It cannot start like this",
    );
    expect(unscheduledSentence(gpu)).toContain("It starts when there is room");
  });

  it("hears of no larger node that is kept for others, and of one that only is drained or silent now", () => {
    const cpu = waits("Insufficient cpu");
    const withTaint = (key: string) => node("64", { taints: [{ key, effect: "NoSchedule" }] });
    expect(unscheduledSentence(cpu, [node("6"), withTaint("gpu")])).toContain("the largest node has 6");
    const elsewhere = { ...node("64"), metadata: { labels: { pool: "gpu" } } };
    expect(unscheduledSentence(cpu, [node("6"), elsewhere])).toContain("the largest node has 6");
    for (const key of ["node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"])
      expect(unscheduledSentence(cpu, [node("6"), withTaint(key)])).toContain("It starts when there is room");
  });

  it("hears how much is missing on a full node that is large enough, and that it starts when there is room", () => {
    const held = room({ "with-16": { cpu: 9.5, memory: 0 } });
    expect(unscheduledSentence(waits("Insufficient cpu"), [node("16")], held)).toBe(
      "No node has room for this workspace: too little CPU (it asks for 8) on 2 of 2 nodes. The node with the most left for it has 6.5 CPU free, so 1.5 CPU are missing. It starts when there is room; a smaller size, or a stopped workspace, helps at once.",
    );
    expect(unscheduledSentence(waits("Insufficient cpu"), [node("16")], room({ "with-16": { cpu: 9 } }))).toContain(
      "7 CPU free, so 1 CPU is missing. It starts",
    );
  });

  it("hears so of each resource, whatever is asked and left", () => {
    const both = asking({ cpu: "2500m", memory: "4Gi" }, "Insufficient cpu", "Insufficient memory");
    const told = unscheduledSentence(both, [node("16")], room({ "with-16": { cpu: 14.25, memory: 28 * GI } }));
    expect(told).toContain(
      "too little CPU (it asks for 2.5) on 2 of 2 nodes and memory (it asks for 4Gi) on 2 of 2 nodes.",
    );
    expect(told).toContain(
      "has 1.75 CPU and 3.2Gi of memory free, so 0.75 CPU and 756Mi of memory are missing. It starts",
    );
    const none = unscheduledSentence(both, [node("16")], room({ "with-16": { cpu: 16, memory: 64 * GI } }));
    expect(none).toContain("has no CPU and no memory free, so 2.5 CPU and 36.8Gi of memory are missing.");
    const gpu = { ...node("16"), status: { allocatable: { "example.com/gpu": "4", pods: "110" } } };
    const taken = room({ "with-16": { "example.com/gpu": 3 } });
    expect(
      unscheduledSentence(asking({ "example.com/gpu": "2" }, "Insufficient example.com/gpu"), [gpu], taken),
    ).toContain(
      "too little example.com/gpu (it asks for 2) on 2 of 2 nodes. The node with the most left for it has 1 of example.com/gpu free, so 1 of example.com/gpu is missing.",
    );
    // Of what no node has enough of, that is said instead.
    const mixed = asking({ cpu: "20", memory: "4Gi" }, "Insufficient cpu", "Insufficient memory");
    expect(unscheduledSentence(mixed, [node("16")], room({ "with-16": { cpu: 2, memory: 28 * GI } }))).toContain(
      "and the largest node has 16, so 4 are missing) on 2 of 2 nodes and memory (it asks for 4Gi) on 2 of 2 nodes. The node with the most left for it has 3.2Gi of memory free, so 756Mi of memory are missing. It cannot start like this",
    );
  });

  it("hears so of the node where its files lie", () => {
    const message =
      "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity.";
    const zone: V1Node = { ...node("12"), metadata: { name: "files", labels: { pool: "notebooks", zone: "1" } } };
    const there = { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["1"] }] }] };
    const held = { "with-16": { cpu: 9 }, files: { cpu: 10 } };
    expect(unscheduledSentence(unscheduled(message), [node("16"), zone], room(held, [there]))).toBe(
      "The node where this workspace's files lie has no room for it: too little CPU (it asks for 8). That node has 2 CPU free, so 6 CPU are missing. It starts when there is room there; a smaller size, or a stopped workspace there, helps at once.",
    );
  });

  it("hears of how many nodes can use its volumes", () => {
    const message =
      "0/4 nodes are available: 3 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity.";
    const nodes = ["1", "1", "1", "2"].map((zone, index): V1Node => {
      return { ...node("12"), metadata: { name: `n${index}`, labels: { pool: "notebooks", zone } } };
    });
    const there = { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["1"] }] }] };
    const held = { n0: { cpu: 10 }, n1: { cpu: 9 }, n2: { cpu: 12 } };
    const tied = unscheduled(message);
    expect(unscheduledSentence(tied, nodes, room(held, [there]))).toBe(
      "None of the 3 nodes that can use this workspace's volumes has room for it: too little CPU (it asks for 8). The one with the most left for it has 3 CPU free, so 5 CPU are missing. It starts when there is room there; a smaller size, or a stopped workspace there, helps at once.",
    );
    expect(unscheduledSentence(tied, nodes)).toContain("No node that can use this workspace's volumes has room for it");
    // Which of them is large enough depends on where its volumes are.
    const small = nodes.map((one) => ({ ...one, status: { allocatable: { cpu: "4", pods: "110" } } }));
    expect([lacksRoom(tied, small), lacksRoom(waits("Insufficient cpu"), small)]).toEqual([true, false]);
  });

  it("hears that nothing is free where that is less than one counts in", () => {
    const memory = asking({ memory: "4Gi" }, "Insufficient memory");
    const held = room({ "with-16": { memory: 32_780_340 * 1024 - 1000 } });
    expect(unscheduledSentence(memory, [node("16")], held)).toContain(
      "has no memory free, so 4Gi of memory are missing",
    );
  });

  it("hears of places for pods, and nothing of room that has come meanwhile", () => {
    const pods = waits("Too many pods");
    expect(unscheduledSentence(pods, [node("16")], room({ "with-16": { pods: 110 } }))).toBe(
      "No node has room for this workspace: no place for one more pod on 2 of 2 nodes. It starts when there is room; a smaller size, or a stopped workspace, helps at once.",
    );
    expect(lacksRoom(pods, [node("16")])).toBe(false);
    const cpu = waits("Insufficient cpu");
    expect(unscheduledSentence(cpu, [node("16")], room({ "with-16": { cpu: 1 } }))).toBe(unscheduledSentence(cpu));
  });
});

it.each(["DeletionByTaintManager", "DeletionByPodGC"])("says that it ended with its node: %s", (reason) => {
  const lost = pod({ phase: "Running", conditions: [condition("DisruptionTarget", "True", reason)] });
  const sentence = "The node node-1 no longer answers, and the workspace ended with it.";
  expect(podState(lost)).toEqual({ kind: "ended", sentence, placeLost: true });
});

describe("a pod that runs again", () => {
  const at = new Date("2026-11-24T10:00:30Z");
  const again = (
    terminated: { exitCode: number; reason: string; finishedAt?: Date },
    state = { running: {} } as object,
  ) => pod({ ...container(state, { restartCount: 1, lastState: { terminated } }), phase: "Running" });

  it("says that it ran out of memory, of how much and when, what is lost, and what helps", () => {
    const oom = again({ exitCode: 137, reason: "OOMKilled", finishedAt: at });
    expect(podState(oom)).toEqual({ kind: "running" });
    const sentence =
      "The workspace needed more memory than its size has (2Gi): it was ended at 2026-11-24 10:00 UTC, and started again. The notebooks' variables are gone, files are kept. Choose a larger size, or load less at once.";
    expect(restartedOf(oom)).toEqual({ at, cause: "memory", sentence });
    // A watch hands over times as text.
    const text = { exitCode: 137, reason: "OOMKilled", finishedAt: "2026-11-24T10:00:30Z" as unknown as Date };
    expect(restartedOf(again(text))).toEqual({ at, cause: "memory", sentence });
  });

  it("tells when it was made, by a list's time and by a watch's text", () => {
    const made = (creationTimestamp: unknown) => ({ metadata: { creationTimestamp: creationTimestamp as Date } });
    for (const time of [at, at.toISOString()]) expect(madeAt(made(time))).toEqual(at);
    expect(Date.now() - madeAt(undefined).getTime()).toBeLessThan(60_000);
  });

  it("says so of a crash, with its exit code", () => {
    expect(restartedOf(again({ exitCode: 139, reason: "Error", finishedAt: at }))).toEqual({
      ...{ at, cause: "itself" },
      sentence:
        "JupyterLab ended by itself at 2026-11-24 10:00 UTC with exit code 139, and was started again. The notebooks' variables are gone, files are kept. If it happens again, choose a larger size, or undo what was changed last in the packages.",
    });
  });

  it("says so of one whose machine was restarted, and does not blame the notebooks", () => {
    const sentence =
      "The workspace's machine was restarted at 2026-11-24 10:00 UTC, and JupyterLab was started again there. The notebooks' variables are gone, files are kept.";
    const machine = { at, cause: "machine", sentence };
    for (const ended of [
      { exitCode: 255, reason: "Unknown" },
      { exitCode: 137, reason: "ContainerStatusUnknown" },
      { exitCode: 255, reason: "Error" },
    ])
      expect(restartedOf(again({ ...ended, finishedAt: at }))).toEqual(machine);
    expect(restartedOf(again({ exitCode: 137, reason: "Error", finishedAt: at }))).toMatchObject({ cause: "itself" });
    // Nobody saw when it ended.
    const unseen = { exitCode: 137, reason: "ContainerStatusUnknown", finishedAt: null as unknown as Date };
    expect(restartedOf(again(unseen, { running: { startedAt: at } }))).toEqual(machine);
    expect(restartedOf(again(unseen))).toBeUndefined();
  });

  it("says nothing of one that never ended, or has not come back yet", () => {
    expect(restartedOf(pod({ ...container({ running: {} }), phase: "Running" }))).toBeUndefined();
    const oom = { exitCode: 137, reason: "OOMKilled", finishedAt: at };
    expect(restartedOf(again(oom, { waiting: { reason: "CrashLoopBackOff" } }))).toBeUndefined();
    expect(restartedOf(again({ exitCode: 137, reason: "OOMKilled" }))).toBeUndefined();
  });
});

it("tells a pod that somebody deletes from one that a drain ends", () => {
  const deleted = { ...pod({ phase: "Running" }), metadata: { name: "ws-1", deletionTimestamp: new Date() } };
  expect(podState(deleted)).toMatchObject({
    kind: "ended",
    sentence: expect.stringContaining("deleted by somebody else") as string,
  });
});

describe("a refusal of the API server", () => {
  it("names the resources of the quota, asked for and in use", () => {
    const message =
      'pods "ws-1" is forbidden: exceeded quota: sluice, requested: limits.cpu=4,limits.memory=8Gi, used: limits.cpu=62,limits.memory=120Gi, limited: limits.cpu=64,limits.memory=124Gi';
    expect(quotaSentence(message)).toBe(
      "The team's quota on the cluster is used up: 4 of CPU (limit) asked for, 62 of 64 in use; 8Gi of memory (limit) asked for, 120Gi of 124Gi in use. Stop a workspace of the team, choose a smaller size, or ask an admin for more.",
    );
    expect(quotaSentence('pods "ws-1" already exists')).toBeUndefined();
  });

  it("says whom to tell otherwise", () => {
    expect(
      refusalSentence('pods "ws-1" is forbidden: violates PodSecurity "restricted:latest": host namespaces'),
    ).toContain("security rules refuse the pod");
    expect(refusalSentence('pods "ws-1" is forbidden: no PriorityClass with name interactive was found')).toContain(
      "priority class that the cluster does not have",
    );
    expect(refusalSentence("namespaces is forbidden: User x cannot patch")).toContain("Tell an admin");
    expect(volumeSentence('storageclass.storage.k8s.io "fast" not found')).toContain("storage class");
    const message =
      'MountVolume.SetUp failed for volume "ws-a-dst-b" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o ro nas.example:/export /var/lib/kubelet/pods/c\nOutput: mount.nfs: access denied by server while mounting nas.example:/export\n';
    expect(mountSentence(message, "the dataset images")).toBe(
      "The volume for the dataset images cannot be mounted: access denied by server while mounting nas.example:/export. If this stays, an admin checks the server that it is on, and that the nodes have what mounts it.",
    );
    expect(mountSentence('Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) ws-1-2')).toContain(
      "still attached to the node that had it last",
    );
  });
});

const nodeThat = (ready: string, since?: Date): V1Node => ({
  metadata: { name: "node-1" },
  status: { conditions: [{ ...condition("Ready", ready, ""), ...(since && { lastTransitionTime: since }) }] },
});

it("says of a node that is emptied whether the workspace goes elsewhere, and why not", () => {
  const node = nodeThat("True");
  expect(leavingNews(node, { afterMs: 1000 })).toEqual({
    sentence:
      "The node node-1 is being emptied for maintenance. The workspace is started again on another node; save what is only in memory, or restart it yourself before.",
    movesAfterMs: 1000,
  });
  expect(leavingNews(node, { why: "no other node can take this workspace" })).toEqual({
    sentence:
      "The node node-1 is being emptied for maintenance, and no other node can take this workspace. It goes on here until the node ends; save what is only in memory.",
  });
});

it("takes a node for silent of which nothing is heard, not one that says it is not ready", () => {
  const since = new Date("2026-11-25T12:00:00Z");
  expect(silentSince(nodeThat("Unknown", since))).toEqual(since);
  expect(silentSince(nodeThat("False", since))).toBeUndefined();
  expect(silentSince(nodeThat("True", since))).toBeUndefined();
  expect(unreadyNews(nodeThat("False"), { lostNodeSeconds: 300 }).sentence).toContain(
    "if that lasts for 5 min, the workspace is ended",
  );
});

it("says of a silent node whether the workspace answers, when it is started elsewhere, or why it is not", () => {
  const lostAt = new Date("2026-11-25T12:05:30Z");
  const told = (reached: boolean, why?: string) =>
    silentNews(nodeThat("Unknown"), {
      lostAt,
      reached,
      out: why === undefined ? { leads: true } : { leads: false, why },
    }).sentence;
  expect(told(true)).toBe(
    "The node node-1 no longer answers the cluster. The workspace still answers and goes on there; save what matters.",
  );
  expect(told(false)).toBe(
    "The node node-1 no longer answers the cluster, and the workspace answers nobody. If that is so until 12:05 UTC, it is started again on another node, with its files and without what was only in memory.",
  );
  expect(told(false, "its volume for the home folder can be used on no other node")).toBe(
    "The node node-1 no longer answers the cluster, and the workspace answers nobody; its volume for the home folder can be used on no other node. It comes back with the node, with its files. An admin can tell when that will be.",
  );
});
