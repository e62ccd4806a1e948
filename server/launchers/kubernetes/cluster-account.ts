/** Whose a token of the cluster is: the cluster is asked. */
import { AuthenticationV1Api } from "@kubernetes/client-node";
import { loadConfig } from "./cluster-client.ts";
import type { KubernetesSettings } from "./settings.ts";

/** A service account, and the pod in which its token was made. */
export type ClusterAccount = {
  namespace: string;
  account: string;
  /** As the audit log names it: `system:serviceaccount:…`. */
  name: string;
  pod: { name: string; uid: string } | undefined;
  node: string | undefined;
};

/**
 * Gives the account of a token that the cluster issued for this audience and that is still good (its pod lives);
 * undefined for every other text. Throws when the cluster does not answer.
 */
export async function clusterAccount(
  settings: KubernetesSettings,
  token: string,
  audience: string,
): Promise<ClusterAccount | undefined> {
  if (!looksIssued(token)) return undefined;
  const api = loadConfig(settings.kubeconfig).makeApiClient(AuthenticationV1Api);
  const { status } = await api.createTokenReview({
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, audiences: [audience] } },
  });
  if (status?.authenticated !== true || status.audiences?.includes(audience) !== true) return undefined;
  const name = status.user?.username ?? "";
  const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name) ?? [];
  if (namespace === undefined || account === undefined) return undefined;
  const told = (key: string) => status.user?.extra?.[`authentication.kubernetes.io/${key}`]?.[0];
  const [pod, uid] = [told("pod-name"), told("pod-uid")];
  return {
    namespace,
    account,
    name,
    pod: pod === undefined || uid === undefined ? undefined : { name: pod, uid },
    node: told("node-name"),
  };
}

/** The account of the cluster's GPU servers, when the token is one of theirs. */
export async function gpuServerAccount(
  settings: KubernetesSettings,
  token: string,
): Promise<ClusterAccount | undefined> {
  const { gpuServers } = settings;
  if (gpuServers === undefined) return undefined;
  const found = await clusterAccount(settings, token, gpuServers.audience);
  return found !== undefined && isGpuServer(found, gpuServers) ? found : undefined;
}

/** Whether it is a pod with the GPU servers' account: a token that was made for no pod works from anywhere. */
export function isGpuServer(found: ClusterAccount, of: NonNullable<KubernetesSettings["gpuServers"]>): boolean {
  return found.namespace === of.namespace && found.account === of.account && found.pod !== undefined;
}

/** A token of the cluster is a JWT; other secrets are not shown to it. */
const looksIssued = (token: string) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);
