/** The words for images that cannot be pulled; the inputs are what kubelet, containerd, CRI-O and registries write. */
import type { V1Pod } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { pullFailure } from "./pull-failure.ts";

const IMAGE = "registry.example/a:1";
const pod = (...secrets: string[]): V1Pod => ({
  spec: {
    nodeName: "node-1",
    containers: [{ name: "workspace", image: IMAGE }],
    imagePullSecrets: secrets.map((name) => ({ name })),
  },
});
const pullSentence = (...given: Parameters<typeof pullFailure>) => pullFailure(...given).sentence;
const backOff = `Back-off pulling image "${IMAGE}": ErrImagePull: failed to pull and unpack image "${IMAGE}": failed to resolve reference "${IMAGE}": `;

it("leaves out who was asked for what", () => {
  const why = "pulling from host registry.example failed with status code [manifests 1]: 401 Unauthorized";
  expect(pullSentence(pod("registry"), backOff + why)).toContain(`the image ${IMAGE}: 401 Unauthorized. Ask`);
});

it.each([
  "unexpected status code [manifests 1]: 401 Unauthorized",
  "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
  "reading manifest 1 in registry.example/a: unauthorized: authentication required",
])("sends to the admin's pull secret when the registry refuses: %s", (why) => {
  expect(pullSentence(pod("registry", "second"), backOff + why)).toBe(
    `The registry does not let the cluster pull the image ${IMAGE}: ${why}. Ask an admin to check its name and user and password in the pull secret registry, second.`,
  );
  expect(pullSentence(pod(), backOff + why)).toContain("to name a secret of its registry (imagePullSecrets).");
});

it.each([`${IMAGE}: not found`, "reading manifest 1 in registry.example/a: manifest unknown"])(
  "says that the registry does not have it: %s",
  (why) => {
    expect(pullSentence(pod("registry"), backOff + why)).toBe(
      `The image ${IMAGE} is not in its registry. Ask an admin to check its name in the settings.`,
    );
  },
);

it.each([
  'failed to do request: Head "https://registry.example/v2/a/manifests/1": dial tcp 10.0.0.1:443: connect: connection refused',
  'failed to do request: Head "https://registry.example/v2/a/manifests/1": dial tcp: lookup registry.example: no such host',
  "unexpected status from HEAD request to https://registry.example/v2/a/manifests/1: 503 Service Unavailable",
  "pulling from host registry.example failed with status code [manifests 1]: 500 Internal Server Error",
])("says that the registry cannot be reached, and waits: %s", (why) => {
  const said = why.replace(/^pulling from host .*\]: /, "");
  expect(pullFailure(pod("registry"), backOff + why)).toEqual({
    passes: true,
    sentence: `The registry of the image ${IMAGE} cannot be reached: ${said}. It is tried again while the start lasts; if this stays, an admin checks the registry and the nodes' way to it.`,
  });
});

it.each([
  "429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit",
  "toomanyrequests: You have reached your pull rate limit as 'ada': authentication required for more",
])("says that the registry limits how much is pulled, and waits: %s", (why) => {
  const { sentence, passes } = pullFailure(pod(), backOff + why);
  expect(passes).toBe(true);
  expect(sentence).toContain(`lets this cluster pull no more for now: ${why}. It is tried again`);
});

it("does not wait for a registry that the nodes do not trust, nor for a disk that is full", () => {
  const unknown =
    'failed to do request: Head "https://registry.example/v2/a/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority';
  expect(pullFailure(pod(), backOff + unknown)).toEqual({
    passes: false,
    sentence: `The nodes do not trust the registry of the image ${IMAGE}: ${unknown}. An admin checks its certificate, and whom the nodes trust.`,
  });
  const full = `failed to extract layer sha256:${"5".repeat(64)}: write /var/lib/containerd/x: no space left on device`;
  expect(pullFailure(pod(), backOff + full)).toEqual({
    passes: false,
    sentence: `The disk of the node node-1 has no room for the image ${IMAGE}. Start again later, another node may take it; an admin makes room on that disk.`,
  });
});

it("repeats what it does not know", () => {
  expect(pullSentence(pod(), 'Failed to inspect image "a": disk full.')).toBe(
    `The image ${IMAGE} cannot be pulled: Failed to inspect image "a": disk full. Ask an admin to check its name in the settings, and whether the cluster may read that registry.`,
  );
});
