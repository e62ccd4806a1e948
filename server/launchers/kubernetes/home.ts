/** The claim of a workspace's home: made at its first start, and larger at a later one where the cluster can do that. */
import type { V1PersistentVolumeClaim } from "@kubernetes/client-node";
import type { WorkspaceSpec } from "#server/launchers/launcher.ts";
import { type ClusterClient, isUnreachable, refusal } from "./cluster-client.ts";
import { homeClaim, namespaceOf } from "./objects.ts";
import type { KubernetesSettings } from "./settings.ts";
import { firstSentence } from "./words.ts";

type Client = Pick<ClusterClient, "apply" | "claim">;

/**
 * Applies the claim. One that is there and that the cluster does not make larger (its class cannot, it was made by hand,
 * the team's quota is used up) stays as large as it is, and `tell` gets a sentence about that.
 */
export async function applyHome(
  client: Client,
  settings: KubernetesSettings,
  spec: WorkspaceSpec,
  tell: (sentence: string) => void,
): Promise<V1PersistentVolumeClaim> {
  const there = await client.claim(namespaceOf(settings, spec.teamId), spec.id);
  const wanted = homeClaim(spec, settings, there);
  const [before, size] = [there, wanted].map((claim) => claim?.spec?.resources?.requests?.storage);
  try {
    return await client.apply(wanted);
  } catch (error) {
    const said = isUnreachable(error) ? undefined : refusal(error);
    if (said === undefined || before === undefined || before === size) throw error;
    const asBefore = { ...settings, home: { ...settings.home, size: before } };
    const kept = await client.apply(homeClaim(spec, asBefore, there));
    tell(
      `The home folder stays at ${before}: the cluster does not make it ${size} (${firstSentence(said)}). An admin knows whether its storage can grow.`,
    );
    return kept;
  }
}
