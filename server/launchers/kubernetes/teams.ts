/** What teams' namespaces hold beside workspaces: put as the settings say, and taken away where they no longer do. */
import type { KubernetesObject, V1Namespace } from "@kubernetes/client-node";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import type { Logger } from "#server/log.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { namespaceOf, networkPolicy, SELECTOR, TEAM_LABEL, teamObjects } from "./objects.ts";
import { copyPullSecrets, teamCopies } from "./pull-secrets.ts";
import type { KubernetesSettings } from "./settings.ts";

/** Reads the outgoing network policy of a team, by its id. */
export type EgressPolicyOf = (teamId: string) => Promise<EgressPolicy>;

type Client = Pick<ClusterClient, "apply" | "list" | "remove"> & Parameters<typeof copyPullSecrets>[0];

/** Puts a team's namespace and its rules. Gives a sentence for each registry's secret that cannot be copied there. */
export async function putTeam(
  client: Client,
  settings: KubernetesSettings,
  teamId: string,
  egress: EgressPolicy,
): Promise<string[]> {
  const wanted: KubernetesObject[] = teamObjects(settings, teamId, egress);
  for (const object of wanted) await client.apply(object);
  // The one of them that settings may do without; certificates stay for whoever has them mounted.
  if (!wanted.some(({ kind }) => kind === "ResourceQuota"))
    for (const quota of await client.list("v1", "ResourceQuota", SELECTOR, namespaceOf(settings, teamId)))
      await client.remove(quota);
  return await copyPullSecrets(client, teamCopies(settings, teamId));
}

/**
 * The same for every team that has a namespace: new settings hold for what runs there, and not from its next launch.
 * Goes on with the others where one cannot be put, and throws then.
 */
export async function putTeams(
  client: Client,
  settings: KubernetesSettings,
  egressPolicyOf: EgressPolicyOf,
  log: Logger,
): Promise<void> {
  const failed: unknown[] = [];
  for (const { metadata } of await client.list<V1Namespace>("v1", "Namespace", `${SELECTOR},${TEAM_LABEL}`)) {
    const teamId = metadata?.labels?.[TEAM_LABEL] ?? "";
    // Other installations have teams, too.
    if (metadata?.name !== namespaceOf(settings, teamId) || metadata.deletionTimestamp !== undefined) continue;
    try {
      for (const sentence of await putTeam(client, settings, teamId, await egressPolicyOf(teamId)))
        log.warn({ teamId }, sentence);
    } catch (error) {
      failed.push(error);
    }
  }
  if (failed.length > 0) throw new AggregateError(failed, `${failed.length} teams' objects could not be put`);
}

/** Puts the NetworkPolicy of a team whose outgoing network policy changed, where the team has a namespace. */
export async function putNetworkPolicy(
  client: Pick<ClusterClient, "apply" | "list">,
  settings: KubernetesSettings,
  teamId: string,
  egressPolicyOf: EgressPolicyOf,
): Promise<void> {
  const found = await client.list<V1Namespace>("v1", "Namespace", `${SELECTOR},${TEAM_LABEL}=${teamId}`);
  const isHere = ({ metadata }: V1Namespace) =>
    metadata?.name === namespaceOf(settings, teamId) && metadata.deletionTimestamp === undefined;
  if (found.some(isHere)) await client.apply(networkPolicy(settings, teamId, await egressPolicyOf(teamId)));
}
