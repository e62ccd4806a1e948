/** Why an image cannot be pulled, in the words of whoever runs containers, as a sentence with what to do. */
import type { V1Pod } from "@kubernetes/client-node";

/** What containerd, CRI-O and registries say; what is refused comes first, as it is often put as not found as well. */
const REFUSED =
  /\b40[13]\b|unauthorized|forbidden|authoriz|authentication required|no basic auth|access denied|invalid username/i;
const MISSING = /not found|manifest unknown|name unknown|\b404\b/i;
const BUSY = /\b429\b|too ?many ?requests|rate limit/i;
const NO_TLS = /x509|tls:|gave HTTP response/i;
const AWAY =
  /connection refused|no such host|no route to host|timeout|deadline exceeded|dial tcp|connection reset|unexpected EOF|\b50\d\b/i;
const FULL = /no space left on device|disk quota exceeded/i;

/** Who says what they tried, before what went wrong. */
const PREFIXES =
  /^(Back-off pulling image "[^"]*": |ErrImagePull: |rpc error: code = \w+ desc = |failed to pull and unpack image "[^"]*": |failed to resolve reference "[^"]*": |failed to pull image "[^"]*": |pulling from host \S+ failed with status code \[[^\]]*\]: )+/;

/** `passes`: it may be over when the node tries again, as it does by itself. */
export type PullFailure = { sentence: string; passes: boolean };

export function pullFailure(pod: V1Pod, message: string): PullFailure {
  const image = pod.spec?.containers[0]?.image ?? "of this workspace";
  const why = message.trim().replace(PREFIXES, "").split("\n")[0]?.replace(/\.$/, "").slice(0, 300) ?? "";
  const said = why.replaceAll(image, "");
  const lasting = (sentence: string): PullFailure => ({ sentence, passes: false });
  const passing = (sentence: string): PullFailure => ({ sentence, passes: true });
  // Before what is refused: the registries' words about their limits speak of who has logged in.
  if (BUSY.test(said))
    return passing(
      `The registry of the image ${image} lets this cluster pull no more for now: ${why}. It is tried again while the start lasts; if this stays, an admin names a secret of that registry (imagePullSecrets), or puts the image into a registry of your own.`,
    );
  if (FULL.test(said))
    return lasting(
      `The disk of the node ${pod.spec?.nodeName ?? ""} has no room for the image ${image}. Start again later, another node may take it; an admin makes room on that disk.`,
    );
  if (REFUSED.test(said)) {
    const secrets = (pod.spec?.imagePullSecrets ?? []).flatMap(({ name }) => name ?? []);
    const login =
      secrets.length === 0
        ? "to name a secret of its registry (imagePullSecrets)"
        : `user and password in the pull secret ${secrets.join(", ")}`;
    return lasting(
      `The registry does not let the cluster pull the image ${image}: ${why}. Ask an admin to check its name and ${login}.`,
    );
  }
  if (MISSING.test(said))
    return lasting(`The image ${image} is not in its registry. Ask an admin to check its name in the settings.`);
  if (NO_TLS.test(said))
    return lasting(
      `The nodes do not trust the registry of the image ${image}: ${why}. An admin checks its certificate, and whom the nodes trust.`,
    );
  if (AWAY.test(said))
    return passing(
      `The registry of the image ${image} cannot be reached: ${why}. It is tried again while the start lasts; if this stays, an admin checks the registry and the nodes' way to it.`,
    );
  return lasting(
    `The image ${image} cannot be pulled: ${why}. Ask an admin to check its name in the settings, and whether the cluster may read that registry.`,
  );
}
