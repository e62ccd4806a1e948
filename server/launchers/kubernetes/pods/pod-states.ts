/** What the state of a borrowing pod means for its lease. Pure. */
import type { CoreV1Event, V1Pod } from "@kubernetes/client-node";
import { hashSecret } from "#server/ids.ts";
import { CHECK_PREFIX, WAIT } from "./borrowing-pod.ts";

/** Whether its programs have ended for good: nothing of it uses a GPU any more. */
export function hasEnded(pod: V1Pod): boolean {
  if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") return true;
  const programs = pod.status?.containerStatuses ?? [];
  const over = programs.length > 0 && programs.every(({ state }) => state?.terminated !== undefined);
  return pod.metadata?.deletionTimestamp !== undefined && (over || programs.length === 0);
}

/** What one of our containers said when it ended the pod's start: an image without what it needs, or no GPU. */
export function refusalOf(pod: V1Pod): { about: string; message: string } | undefined {
  for (const status of pod.status?.initContainerStatuses ?? []) {
    if (!status.name.startsWith(CHECK_PREFIX) && status.name !== WAIT) continue;
    const ended = status.state?.terminated ?? status.lastState?.terminated;
    if (ended === undefined || ended.exitCode === 0) continue;
    const message = ended.message?.trim() || `${status.name} ended with exit code ${ended.exitCode}.`;
    return { about: `${status.name} ${status.restartCount}`, message };
  }
  return undefined;
}

type Told = { about: string; reason: string; message: string };

/** An event on the pod. Its name follows from what it is about, so that nobody tells it twice. */
export function podEvent(pod: V1Pod, { about, reason, message }: Told, at: Date): CoreV1Event {
  const { name = "", namespace = "", uid = "" } = pod.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name.slice(0, 200)}.${hashSecret(`${uid} ${about}`).slice(0, 24)}`, namespace },
    involvedObject: { apiVersion: "v1", kind: "Pod", name, namespace, uid },
    reason,
    // The cluster takes no more.
    message: message.slice(0, 1024),
    type: reason === "GpuNotBorrowed" ? "Warning" : "Normal",
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    source: { component: "sluice" },
    reportingComponent: "sluice.dev/broker",
    reportingInstance: "broker",
  };
}
