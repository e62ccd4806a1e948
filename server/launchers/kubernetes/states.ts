/** What the state of a pod means to a person: a sentence that says what is wrong, and one that says what to do. */
import type { V1ContainerStateTerminated, V1ContainerStatus, V1Node, V1Pod } from "@kubernetes/client-node";
import type { PlaceNews, Restarted } from "#server/launchers/launcher.ts";
import { formatSpan } from "#server/span.ts";
import { answers } from "./eligible.ts";
import { pullFailure } from "./pull-failure.ts";
import type { KubernetesSettings } from "./settings.ts";
import { isUnscheduled, unscheduledSentence } from "./unscheduled.ts";
import { firstSentence, resourceName } from "./words.ts";

export type PodState =
  /** It goes on by itself; `sentence` says what it waits for, when that is more than the usual steps. */
  | { kind: "waiting"; sentence?: string }
  | { kind: "running" }
  /** It will not come up, or it has ended. `placeLost`: with its node, and by no fault of its own. */
  | { kind: "failed" | "ended"; sentence: string; placeLost?: true };

/** Waiting reasons of a container whose image cannot be had. */
const IMAGE_REASONS = [
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
];

/** When it was made, by the cluster's clock; now, for one that is not there. What a watch tells has times as text. */
export function madeAt(pod: V1Pod | undefined): Date {
  return new Date(pod?.metadata?.creationTimestamp ?? Date.now());
}

export function podState(pod: V1Pod): PodState {
  const { status } = pod;
  const disruption = status?.conditions?.find(
    ({ type, status: holds }) => type === "DisruptionTarget" && holds === "True",
  );
  if (status?.reason === "Evicted") return { kind: "ended", sentence: evicted(pod) };
  if (disruption !== undefined) return disrupted(pod, disruption.reason ?? "");
  if (pod.metadata?.deletionTimestamp !== undefined)
    return {
      kind: "ended",
      sentence: "The pod of this workspace was deleted by somebody else than Sluice. Start brings it back.",
    };
  if (status?.reason === "NodeLost" || status?.phase === "Unknown") return nodeLost(pod);
  const container = status?.containerStatuses?.find(({ name }) => name === "workspace");
  const waiting = container?.state?.waiting;
  if (waiting?.reason !== undefined && IMAGE_REASONS.includes(waiting.reason)) {
    const { sentence, passes } = pullFailure(pod, waiting.message ?? waiting.reason);
    return { kind: passes ? "waiting" : "failed", sentence };
  }
  if (waiting?.reason === "ErrImagePull") {
    // The first failure may be an accident, the back-off is none.
    const { sentence, passes } = pullFailure(pod, waiting.message ?? "");
    return { kind: "waiting", ...(passes ? { sentence } : {}) };
  }
  if (waiting?.reason === "CreateContainerConfigError") {
    return {
      kind: "failed",
      sentence: `The container cannot be made: ${firstSentence(waiting.message ?? "")}. Start makes everything of the workspace anew; if it fails again, tell an admin.`,
    };
  }
  if (waiting?.reason === "CreateContainerError" || waiting?.reason === "RunContainerError") {
    return {
      kind: "failed",
      sentence: `The container cannot be started: ${firstSentence(waiting.message ?? "")}. Tell an admin: the image may not be made for workspaces.`,
    };
  }
  if (waiting?.reason === "CrashLoopBackOff") return { kind: "failed", sentence: crashed(pod, container) };
  if (status?.phase === "Succeeded")
    return { kind: "ended", sentence: "JupyterLab was shut down. Start brings it back." };
  if (status?.phase === "Failed") return { kind: "ended", sentence: ended(pod, container) };
  if (container?.state?.running !== undefined) return { kind: "running" };
  if (isUnscheduled(pod)) return { kind: "waiting", sentence: unscheduledSentence(pod) };
  return { kind: "waiting" };
}

/** What people should know of a pod that runs and whose container ended by itself before; undefined: it never did. */
export function restartedOf(pod: V1Pod): Restarted | undefined {
  const container = pod.status?.containerStatuses?.find(({ name }) => name === "workspace");
  const last = container?.lastState?.terminated;
  const running = container?.state?.running;
  if (running === undefined || container?.restartCount === 0 || last === undefined) return undefined;
  // The API server has no time of an end that nobody saw: null.
  const ended = (last.finishedAt as Date | null | undefined) ?? running.startedAt;
  if (ended == null) return undefined;
  const at = new Date(ended);
  const when = `at ${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const lost = "The notebooks' variables are gone, files are kept.";
  if (isLostContainer(last))
    return {
      ...{ at, cause: "machine" },
      sentence: `The workspace's machine was restarted ${when}, and JupyterLab was started again there. ${lost}`,
    };
  if (last.reason !== "OOMKilled")
    return {
      ...{ at, cause: "itself" },
      sentence: `JupyterLab ended by itself ${when} with exit code ${last.exitCode}, and was started again. ${lost} If it happens again, choose a larger size, or undo what was changed last in the packages.`,
    };
  return {
    ...{ at, cause: "memory" },
    sentence: `The workspace needed more memory than its size has${limitOf(pod)}: it was ended ${when}, and started again. ${lost} Choose a larger size, or load less at once.`,
  };
}

/** Whether it ended with its machine, or with what runs containers there, and nobody saw how. */
function isLostContainer({ reason, exitCode }: V1ContainerStateTerminated): boolean {
  return reason === "Unknown" || reason === "ContainerStatusUnknown" || (reason !== "OOMKilled" && exitCode === 255);
}

/** Since when nothing is heard of a node; undefined: its kubelet says how it is. */
export function silentSince(node: V1Node): Date | undefined {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "Unknown" && ready.lastTransitionTime != null
    ? new Date(ready.lastTransitionTime)
    : undefined;
}

/** Where a workspace could go from its node; `why`: a part of a sentence that says why nowhere. */
export type WayOut = { leads: true } | { leads: false; why: string };

/** A node that takes no new pods, and still answers: what runs there can leave it. */
export function isLeft(node: V1Node): boolean {
  return answers(node) && node.spec?.unschedulable === true;
}

/** Of a node that is being emptied; `move`: with how much notice the workspace goes elsewhere, or why it goes nowhere. */
export function leavingNews(node: V1Node, move: { afterMs: number } | { why: string }): PlaceNews {
  const name = node.metadata?.name ?? "";
  if ("why" in move)
    return {
      sentence: `The node ${name} is being emptied for maintenance, and ${move.why}. It goes on here until the node ends; save what is only in memory.`,
    };
  return {
    sentence: `The node ${name} is being emptied for maintenance. The workspace is started again on another node; save what is only in memory, or restart it yourself before.`,
    movesAfterMs: move.afterMs,
  };
}

/** Of a node whose kubelet says itself that it cannot run pods. */
export function unreadyNews(node: V1Node, { lostNodeSeconds }: Pick<KubernetesSettings, "lostNodeSeconds">): PlaceNews {
  const name = node.metadata?.name ?? "";
  return {
    sentence: `The node ${name} says that it is not ready. Notebooks may go on there; if that lasts for ${formatSpan(lostNodeSeconds)}, the workspace is ended. Save what matters.`,
  };
}

/** Of a node of which nothing is heard; `reached`: the workspace's server still answers people. */
export function silentNews(
  node: V1Node,
  { lostAt, reached, out }: { lostAt: Date; reached: boolean; out: WayOut },
): PlaceNews {
  const silent = `The node ${node.metadata?.name ?? ""} no longer answers the cluster`;
  if (reached) return { sentence: `${silent}. The workspace still answers and goes on there; save what matters.` };
  const when = `${lostAt.toISOString().slice(11, 16)} UTC`;
  if (!out.leads)
    return {
      sentence: `${silent}, and the workspace answers nobody; ${out.why}. It comes back with the node, with its files. An admin can tell when that will be.`,
    };
  return {
    sentence: `${silent}, and the workspace answers nobody. If that is so until ${when}, it is started again on another node, with its files and without what was only in memory.`,
  };
}

/** A pod that was to end and has not. */
export function stillThere(pod: V1Pod, { lostNodeSeconds }: Pick<KubernetesSettings, "lostNodeSeconds">): string {
  const node = pod.spec?.nodeName ?? "its node";
  return `The pod is still on ${node}, which may not answer. It is gone when ${node} is back, or was silent for ${formatSpan(lostNodeSeconds)} while nobody reached the workspace there; an admin who knows that it is off marks it with the taint node.kubernetes.io/out-of-service.`;
}

/** Whether its server takes connections: before that, a service leads to nobody. */
export function isReady(pod: V1Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/** The answer to a pod that the team's quota has no room for; undefined when it says something else. */
export function quotaSentence(message: string): string | undefined {
  const found = /exceeded quota: \S+, requested: ([^:\n]+), used: ([^:\n]+), limited: ([^:\n]+)$/.exec(message.trim());
  if (found === null) return undefined;
  const [requested, used, limited] = found.slice(1).map(amounts);
  const parts = [...(requested ?? [])].map(
    ([name, amount]) =>
      `${amount} of ${resourceName(name)} asked for, ${used?.get(name) ?? "?"} of ${limited?.get(name) ?? "?"} in use`,
  );
  return `The team's quota on the cluster is used up: ${parts.join("; ")}. Stop a workspace of the team, choose a smaller size, or ask an admin for more.`;
}

/** Other refusals of the API server. */
export function refusalSentence(message: string): string {
  if (/violates PodSecurity/.test(message))
    return `The cluster's security rules refuse the pod: ${firstSentence(message)}. Tell an admin.`;
  if (/priorityclass/i.test(message) && /not found|no PriorityClass/i.test(message))
    return `The size asks for a priority class that the cluster does not have: ${firstSentence(message)}. Tell an admin.`;
  return `The cluster refuses the workspace: ${firstSentence(message)}. Tell an admin.`;
}

/** A volume that is there and that the node cannot mount; `use`: what it is for, where that is known. */
export function mountSentence(message: string, use = "the home folder or a dataset"): string {
  if (/Multi-Attach error/.test(message))
    return `The volume for ${use} is still attached to the node that had it last. The cluster frees it some minutes after that node is gone; start the workspace again then, or an admin removes the node (kubectl delete node).`;
  const printed = /^Output: (?:mount(?:\.\w+)?: )?(.*)$/m.exec(message)?.[1] ?? message;
  return `The volume for ${use} cannot be mounted: ${firstSentence(printed)}. If this stays, an admin checks the server that it is on, and that the nodes have what mounts it.`;
}

function crashed(pod: V1Pod, container: V1ContainerStatus | undefined): string {
  const last = container?.lastState?.terminated;
  if (last?.reason === "OOMKilled") return outOfMemory(pod);
  const times = container?.restartCount ?? 0;
  return `JupyterLab ends right after its start (${times + 1} times, last with exit code ${last?.exitCode ?? "unknown"}). Its last lines are in the log below; undo what was changed last in the home folder or its packages, or choose another environment.`;
}

function ended(pod: V1Pod, container: V1ContainerStatus | undefined): string {
  const last = container?.state?.terminated;
  if (last?.reason === "OOMKilled") return outOfMemory(pod);
  if (pod.status?.message !== undefined)
    return `The workspace was ended: ${firstSentence(pod.status.message)}. Start brings it back.`;
  return `JupyterLab ended by itself with exit code ${last?.exitCode ?? "unknown"}. Its last lines are in the log below.`;
}

function outOfMemory(pod: V1Pod): string {
  return `The workspace needed more memory than its size has${limitOf(pod)} and was ended. Choose a larger size, or load less at once.`;
}

function limitOf(pod: V1Pod): string {
  const limit = pod.spec?.containers[0]?.resources?.limits?.memory;
  return limit === undefined ? "" : ` (${limit})`;
}

function evicted(pod: V1Pod): string {
  const message = pod.status?.message ?? "";
  const [, volume, limit] = /Usage of EmptyDir volume "(\S+)" exceeds the limit "(\S+)"/.exec(message) ?? [];
  if (volume !== undefined) {
    const place = pod.spec?.containers[0]?.volumeMounts?.find(({ name }) => name === volume)?.mountPath ?? volume;
    return `There was more in ${place} than the ${limit} that fit there, and the workspace was ended. Start brings it back with ${place} empty; keep large files in the home folder.`;
  }
  const [, disk] =
    /ephemeral(?: local)? storage (?:usage exceeds the total )?limit(?: of containers)? "?([^\s"]+\w)/.exec(message) ??
    [];
  if (disk !== undefined)
    return `The workspace had more on its node's disk than the ${disk} that it may, and was ended. Start brings it back; keep large files in the home folder.`;
  return `The node ${pod.spec?.nodeName ?? ""} was short of a resource and had to end this workspace: ${firstSentence(pod.status?.message ?? "no reason was given")}. Start brings it back, on another node if need be.`;
}

/** A pod whose node is gone, or counts as lost. */
export function nodeLost(pod: V1Pod): Extract<PodState, { kind: "failed" | "ended" }> {
  const node = pod.spec?.nodeName ?? "";
  return {
    kind: "ended",
    sentence: `The node ${node} no longer answers, and the workspace ended with it.`,
    placeLost: true,
  };
}

function disrupted(pod: V1Pod, reason: string): PodState {
  const node = pod.spec?.nodeName ?? "";
  // By a taint of the node, or because the node is no longer part of the cluster.
  if (reason === "DeletionByTaintManager" || reason === "DeletionByPodGC") return nodeLost(pod);
  const sentences: Record<string, string> = {
    EvictionByEvictionAPI: `The node ${node} is being emptied for maintenance. Start brings the workspace back on another node.`,
    PreemptionByScheduler:
      "The workspace had to make room for one with a higher priority. Start brings it back when there is room.",
    TerminationByKubelet: evicted(pod),
  };
  return {
    kind: "ended",
    sentence: sentences[reason] ?? `The cluster ended this workspace (${reason}). Start brings it back.`,
  };
}

/** `limits.cpu=2,limits.memory=4Gi` */
function amounts(text: string): Map<string, string> {
  return new Map(text.split(",").map((part) => part.split("=") as [string, string]));
}
