/** The secrets of images' registries, brought to where a team's pods are. */
import { type ClusterClient, isNotFound } from "./cluster-client.ts";
import { pullSecret } from "./objects.ts";
import type { KubernetesSettings } from "./settings.ts";

type Client = Pick<ClusterClient, "apply"> & { core: Pick<ClusterClient["core"], "readNamespacedSecret"> };

/**
 * Copies them as they are now into the team's namespace. Gives a sentence for each that cannot be copied: images that
 * need none start all the same.
 */
export async function copyPullSecrets(client: Client, settings: KubernetesSettings, teamId: string): Promise<string[]> {
  const { imagePullSecrets, imagePullSecretsNamespace: namespace } = settings;
  if (namespace === undefined) return [];
  const lacking: string[] = [];
  for (const name of imagePullSecrets) {
    const found = await client.core.readNamespacedSecret({ namespace, name }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const copy = found === undefined ? undefined : pullSecret(settings, teamId, found);
    if (copy !== undefined) await client.apply(copy);
    else if (found === undefined)
      lacking.push(
        `The pull secret ${name} is not in the namespace ${namespace}. An image that needs it cannot be pulled; ask an admin to put it there.`,
      );
    else
      lacking.push(
        `The secret ${name} is not one of a registry (${found.type ?? "no type"}), and is not copied. An image that needs it cannot be pulled; ask an admin to check the settings.`,
      );
  }
  return lacking;
}
