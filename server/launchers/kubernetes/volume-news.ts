/** Which volume a pod waits for, and what the cluster says of it: its scheduler tells only that there is one. */
import type { CoreV1Event, V1Pod } from "@kubernetes/client-node";
import type { DatasetMount } from "#server/launchers/launcher.ts";
import { insideLayout } from "#server/launchers/layout.ts";
import { type ClusterClient, isNotFound } from "./cluster-client.ts";
import { volumeSentence } from "./unscheduled.ts";

type Core = Pick<ClusterClient["core"], "readNamespacedPersistentVolumeClaim" | "listNamespacedEvent">;

/** A sentence about the first claim of the pod that lacks its volume and of which something is said; undefined: none. */
export async function volumeNews(core: Core, pod: V1Pod): Promise<string | undefined> {
  const namespace = pod.metadata?.namespace ?? "";
  for (const { name: volume, persistentVolumeClaim } of pod.spec?.volumes ?? []) {
    if (persistentVolumeClaim === undefined) continue;
    const name = persistentVolumeClaim.claimName;
    const claim = await core.readNamespacedPersistentVolumeClaim({ namespace, name }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (claim?.status?.phase === "Bound") continue;
    const purpose = purposeOf(pod, volume);
    if (claim === undefined)
      return `The volume claim ${name} for ${purpose} is not in the namespace ${namespace}. Ask an admin to put it there.`;
    const fieldSelector = `involvedObject.kind=PersistentVolumeClaim,involvedObject.name=${name}`;
    const said = newest((await core.listNamespacedEvent({ namespace, fieldSelector })).items);
    if (said !== undefined) return volumeSentence(said, purpose);
  }
  return undefined;
}

/** A sentence about the first bucket whose driver the cluster does not have: nothing ever mounts it. */
export async function missingDriver(
  storage: Pick<ClusterClient["storage"], "readCSIDriver">,
  datasets: readonly DatasetMount[],
): Promise<string | undefined> {
  for (const { name, source } of datasets) {
    if (source.kind !== "s3") continue;
    // Whoever may not ask finds out when it is mounted.
    if (await storage.readCSIDriver({ name: source.driver }).then(() => false, isNotFound))
      return `The dataset ${name} needs the storage driver ${source.driver}, which this cluster does not have. Ask an admin to install it, or start without the dataset.`;
  }
  return undefined;
}

/** What people know a volume of a pod as. */
export function purposeOf(pod: V1Pod, volume: string): string {
  const path = pod.spec?.containers[0]?.volumeMounts?.find(({ name }) => name === volume)?.mountPath ?? "";
  const datasets = `${insideLayout.datasets}/`;
  return path.startsWith(datasets) ? `the dataset ${path.slice(datasets.length)}` : "the home folder";
}

/** That a claim waits for its first pod is no news of that pod. */
function newest(events: readonly CoreV1Event[]): string | undefined {
  const at = ({ lastTimestamp, metadata }: CoreV1Event) =>
    new Date(lastTimestamp ?? metadata.creationTimestamp ?? 0).getTime();
  const telling = events.filter(({ reason }) => reason !== "WaitForFirstConsumer" && reason !== "WaitForPodScheduled");
  return telling.sort((a, b) => at(a) - at(b)).at(-1)?.message;
}
