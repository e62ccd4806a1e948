/** Whether a token comes from the cluster's own GPU servers: the cluster is asked. */
import { AuthenticationV1Api } from "@kubernetes/client-node";
import { loadConfig } from "./cluster-client.ts";
import type { KubernetesSettings } from "./settings.ts";

/**
 * Gives the account's name when `token` is one that the cluster issued for our audience to the account of its GPU
 * servers, and that is still good (its pod lives); undefined for every other text. Throws when the cluster does not
 * answer.
 */
export async function gpuServerAccount(settings: KubernetesSettings, token: string): Promise<string | undefined> {
  if (settings.gpuServers === undefined || !looksIssued(token)) return undefined;
  const { namespace, account, audience } = settings.gpuServers;
  const api = loadConfig(settings.kubeconfig).makeApiClient(AuthenticationV1Api);
  const { status } = await api.createTokenReview({
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, audiences: [audience] } },
  });
  const wanted = `system:serviceaccount:${namespace}:${account}`;
  const good = status?.authenticated === true && status.audiences?.includes(audience) === true;
  return good && status.user?.username === wanted ? wanted : undefined;
}

/** A token of the cluster is a JWT; other secrets are not shown to it. */
const looksIssued = (token: string) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);
