/** The secrets of images' registries, brought to where pods are that need them, and withdrawn again. */
import type { V1Secret } from "@kubernetes/client-node";
import { type ClusterClient, isConflict, isNotFound } from "./cluster-client.ts";
import { isAsPut } from "./drift.ts";
import { MANAGED, namespaceOf, PULL_SECRET_LABEL, pullSecret, SELECTOR, TEAM_LABEL } from "./objects.ts";
import type { KubernetesSettings } from "./settings.ts";

type Client = Pick<ClusterClient, "apply"> & {
  core: Pick<ClusterClient["core"], "readNamespacedSecret" | "listNamespacedSecret" | "deleteNamespacedSecret">;
};

const COPIES = `${SELECTOR},${PULL_SECRET_LABEL}`;

/** Which secrets, from where, and where to with which labels; without `from` somebody else puts them there. */
export type Copies = {
  names: readonly string[];
  from: string | undefined;
  namespace: string;
  labels: Record<string, string>;
};

/** Those of workspaces, for a team's. */
export function teamCopies(settings: KubernetesSettings, teamId: string): Copies {
  const { imagePullSecrets: names, imagePullSecretsNamespace: from } = settings;
  return { names, from, namespace: namespaceOf(settings, teamId), labels: { ...MANAGED, [TEAM_LABEL]: teamId } };
}

/** Those of the client's image, for pods of this namespace that borrow by a label. */
export function podCopies(settings: KubernetesSettings, namespace: string): Copies {
  const { pods, imagePullSecretsNamespace: from } = settings;
  return { names: pods?.imagePullSecrets ?? [], from, namespace, labels: { ...MANAGED } };
}

/**
 * Copies them as they are now, and withdraws copies that are no longer named or whose source is gone. Gives a sentence
 * for each that cannot be copied: images that need none start all the same.
 */
export async function copyPullSecrets(client: Client, copies: Copies): Promise<string[]> {
  const { names, from, namespace } = copies;
  const lacking: string[] = [];
  const kept = new Set<string>();
  for (const name of names) {
    const reason = from === undefined ? undefined : await copy(client, copies, from, name);
    if (reason === undefined) kept.add(name);
    else lacking.push(reason);
  }
  const { items } = await client.core.listNamespacedSecret({ namespace, labelSelector: COPIES });
  for (const secret of items) if (!kept.has(secret.metadata?.name ?? "")) await withdraw(client, secret);
  return lacking;
}

/** Copies one, unless somebody else has put one of that name there. Gives why it cannot be. */
async function copy(client: Client, copies: Copies, from: string, name: string): Promise<string | undefined> {
  const there = await read(client, copies.namespace, name);
  if (there !== undefined && !isAsPut(MANAGED, there.metadata?.labels)) return undefined;
  const source = await read(client, from, name);
  if (source === undefined)
    return `The pull secret ${name} is not in the namespace ${from}. An image that needs it cannot be pulled; ask an admin to put it there.`;
  const made = pullSecret(copies, source);
  if (made === undefined)
    return `The secret ${name} is not one of a registry (${source.type ?? "no type"}), and is not copied. An image that needs it cannot be pulled; ask an admin to check the settings.`;
  // A secret keeps its type for life.
  if (there !== undefined && there.type !== made.type) await withdraw(client, there);
  await client.apply(made);
  return undefined;
}

async function read(client: Client, namespace: string, name: string): Promise<V1Secret | undefined> {
  return await client.core.readNamespacedSecret({ namespace, name }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
}

/** Deletes this very secret: what somebody has put in its place since stays. */
async function withdraw(client: Client, { metadata }: V1Secret): Promise<void> {
  const { namespace = "", name = "", uid } = metadata ?? {};
  await client.core
    .deleteNamespacedSecret({ namespace, name, body: { preconditions: { uid } } })
    .catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    });
}
