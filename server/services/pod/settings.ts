import { SluiceError } from "#server/errors.ts";
import { clusterSettings, type KubernetesSettings, type PodSettings } from "#server/launchers/kubernetes/settings.ts";

/** The cluster's settings, where its pods may borrow; else an error that says so. */
export async function podSettings(): Promise<{ settings: KubernetesSettings; pods: PodSettings }> {
  const settings = await clusterSettings();
  if (settings?.pods === undefined)
    throw new SluiceError(
      "not-found",
      "Pods do not borrow GPUs from this Sluice by a label. An admin allows it: pods in the Kubernetes settings.",
    );
  return { settings, pods: settings.pods };
}
