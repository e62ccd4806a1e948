/** Why an image cannot be pulled, in the words of whoever runs containers, as a sentence with what to do. */
import type { V1Pod } from "@kubernetes/client-node";

/** What containerd, CRI-O and registries say; what is refused comes first, as it is often put as not found as well. */
const REFUSED =
  /\b40[13]\b|unauthorized|forbidden|authoriz|authentication required|no basic auth|access denied|invalid username/i;
const MISSING = /not found|manifest unknown|name unknown|\b404\b/i;
const AWAY =
  /connection refused|no such host|no route to host|timeout|deadline exceeded|dial tcp|connection reset|x509|tls:|gave HTTP response/i;

/** Who says what they tried, before what went wrong. */
const PREFIXES =
  /^(Back-off pulling image "[^"]*": |ErrImagePull: |rpc error: code = \w+ desc = |failed to pull and unpack image "[^"]*": |failed to resolve reference "[^"]*": |failed to pull image "[^"]*": |pulling from host \S+ failed with status code \[[^\]]*\]: )+/;

export function pullSentence(pod: V1Pod, message: string): string {
  const image = pod.spec?.containers[0]?.image ?? "of this workspace";
  const why = message.trim().replace(PREFIXES, "").split("\n")[0]?.replace(/\.$/, "").slice(0, 300) ?? "";
  const said = why.replaceAll(image, "");
  if (REFUSED.test(said)) {
    const secrets = (pod.spec?.imagePullSecrets ?? []).flatMap(({ name }) => name ?? []);
    const login =
      secrets.length === 0
        ? "to name a secret of its registry (imagePullSecrets)"
        : `user and password in the pull secret ${secrets.join(", ")}`;
    return `The registry does not let the cluster pull the image ${image}: ${why}. Ask an admin to check its name and ${login}.`;
  }
  if (MISSING.test(said))
    return `The image ${image} is not in its registry. Ask an admin to check its name in the settings.`;
  if (AWAY.test(said))
    return `The registry of the image ${image} cannot be reached: ${why}. Start again later; if this stays, an admin checks the registry and the nodes' way to it.`;
  return `The image ${image} cannot be pulled: ${why}. Ask an admin to check its name in the settings, and whether the cluster may read that registry.`;
}
