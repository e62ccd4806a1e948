import type { V1Container, V1Pod } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { parseSettings } from "../settings.ts";
import { type AdmissionReview, admit } from "./admission.ts";
import { borrowingPod, isBorrowing } from "./borrowing-pod.ts";
import { hasEnded, podEvent, refusalOf } from "./pod-states.ts";
import { wishOf } from "./wish.ts";

const { pods: settings } = parseSettings({
  environments: {},
  sizes: {},
  home: { size: "1Gi" },
  team: {},
  network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
  pods: {
    image: "registry.example/sluice/client:1",
    gpuType: "soft",
    namespaces: {
      "ml-vision": [
        { team: "vision", person: "ada@example.com" },
        { team: "nlp", person: "lin@example.com" },
      ],
    },
  },
});
if (settings === undefined) throw new Error("no settings");
const around = { settings, brokerUrl: "https://broker:3001", authority: "-----BEGIN CERTIFICATE-----\nX" };
const ask = (labels: Record<string, string>, namespace = "ml-vision") => wishOf(labels, namespace, settings);

describe("What a pod's labels ask for", () => {
  it("is an amount, a type, a team that its namespace belongs to, and a time to wait", () => {
    expect(ask({ "sluice.dev/gpu": "0.5" })).toEqual({
      ok: true,
      wish: { amount: "0.5", gpuType: "soft", team: "vision", person: "ada@example.com", waitSeconds: 3600 },
    });
    const more = { "sluice.dev/gpu-memory": "40G", "sluice.dev/gpu-type": "h200", "sluice.dev/gpu-team": "nlp" };
    expect(ask({ "sluice.dev/gpu": "", ...more, "sluice.dev/gpu-wait": "10m" })).toEqual({
      ok: true,
      wish: { amount: "40G", gpuType: "h200", team: "nlp", person: "lin@example.com", waitSeconds: 600 },
    });
  });

  it.each([
    [{ "sluice.dev/gpu": "1.5" }, "ml-vision", "use 1 or 2"],
    [{ "sluice.dev/gpu": "1", "sluice.dev/gpu-memory": "4G" }, "ml-vision", "both set"],
    [{ "sluice.dev/gpu": "1", "sluice.dev/gpu-wait": "soon" }, "ml-vision", "no length of time"],
    [{ "sluice.dev/gpu": "1", "sluice.dev/gpu-wait": "25h" }, "ml-vision", "at most 24h"],
    [{ "sluice.dev/gpu": "1", "sluice.dev/gpu-team": "robots" }, "ml-vision", "for vision, nlp they may"],
    [{ "sluice.dev/gpu": "1", "sluice.dev/gpu-team": "vision" }, "elsewhere", "belongs to no team"],
    [{ "sluice.dev/gpu": "1" }, "constructor", "belongs to no team"],
  ])("is refused with what to write: %j in %s", (labels, namespace, said) => {
    expect(ask(labels, namespace)).toEqual({ ok: false, message: expect.stringContaining(said) as string });
  });
});

const plain: V1Pod = {
  metadata: { annotations: { mine: "kept" } },
  spec: {
    containers: [
      { name: "main", image: "train:1", env: [{ name: "LD_LIBRARY_PATH", value: "/opt/lib" }] },
      { name: "logs", image: "logs:1" },
    ],
    initContainers: [{ name: "data", image: "data:1" }],
  },
};
const wish = { amount: "0.5", gpuType: "soft", team: "vision", person: "ada@example.com", waitSeconds: 600 };

describe("A borrowing pod", () => {
  const made = borrowingPod(plain, wish, around);
  const names = made.spec?.initContainers?.map(({ name }) => name);

  it("gets the libraries, is checked in its own images, waits, and has the GPU held beside it, before its own steps", () => {
    expect(names).toEqual([
      "sluice-libraries",
      "sluice-check-0",
      "sluice-check-1",
      "sluice-wait",
      "sluice-gpu",
      "data",
    ]);
    const [, check, , wait, hold] = made.spec?.initContainers ?? [];
    expect(check).toMatchObject({ image: "train:1", args: ["main"] });
    expect(wait?.args).toEqual(expect.arrayContaining(["--gpu=0.5", "--type=soft", "--team=vision", "--wait=600s"]));
    expect(hold).toMatchObject({ restartPolicy: "Always", startupProbe: { failureThreshold: 720 } });
  });

  it("shows its credential to our containers alone, for our audience and ten minutes", () => {
    const seen = [...(made.spec?.initContainers ?? []), ...(made.spec?.containers ?? [])]
      .filter(({ volumeMounts }) => volumeMounts?.some(({ name }) => name === "sluice-credential"))
      .map(({ name }) => name);
    expect(seen).toEqual(["sluice-wait", "sluice-gpu"]);
    const [token] = made.spec?.volumes?.find(({ name }) => name === "sluice-credential")?.projected?.sources ?? [];
    expect(token?.serviceAccountToken).toEqual({ audience: "sluice", expirationSeconds: 600, path: "token" });
  });

  it("leaves what its author has set, and puts ours before", () => {
    expect(made.metadata?.annotations).toEqual({ mine: "kept", "sluice.dev/broker-authority": around.authority });
    const env = Object.fromEntries(made.spec?.containers[0]?.env?.map(({ name, value }) => [name, value]) ?? []);
    expect(env.LD_LIBRARY_PATH).toBe("/sluice/lib:/opt/lib");
    expect(env.LD_PRELOAD).toContain("/sluice/lib/libcuda.so.1");
    expect(env.SLUICE_OWNER_SOCKET).toBe("/sluice/run/gpu");
  });

  it("is one in the containers that its annotation names", () => {
    const named = { ...plain, metadata: { annotations: { "sluice.dev/gpu-containers": "main" } } };
    const spec = borrowingPod(named, wish, around).spec;
    expect(spec?.initContainers?.map(({ name }) => name)).not.toContain("sluice-check-1");
    expect(spec?.containers[1]).toEqual(plain.spec?.containers[1]);
  });

  it("satisfies the standard for restricted pods", () => {
    for (const container of made.spec?.initContainers?.filter(({ image }) => image?.includes("client")) ?? [])
      expect(container.securityContext).toMatchObject({
        ...{ allowPrivilegeEscalation: false, runAsNonRoot: true, readOnlyRootFilesystem: true },
        ...{ capabilities: { drop: ["ALL"] }, seccompProfile: { type: "RuntimeDefault" } },
      });
  });
});

describe("The answer to the API server", () => {
  const review = (pod: V1Pod, labels: Record<string, string> = { "sluice.dev/gpu": "0.5" }): AdmissionReview => ({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "u",
      namespace: "ml-vision",
      object: { metadata: { annotations: pod.metadata?.annotations, labels }, spec: pod.spec as never },
    },
  });
  const answer = (...input: Parameters<typeof review>) => admit(review(...input), around).response;

  it("is a patch that makes the pod borrow", () => {
    const { allowed, patch = "" } = answer(plain);
    expect(allowed).toBe(true);
    const ops = JSON.parse(Buffer.from(patch, "base64").toString()) as { path: string; value: V1Container[] }[];
    const value = (path: string) => ops.find((op) => op.path === path)?.value ?? [];
    expect(value("/spec/containers")).toHaveLength(2);
    expect(isBorrowing({ spec: { containers: [], initContainers: value("/spec/initContainers") } })).toBe(true);
  });

  it("makes one borrow that asks for memory alone, with the label by which borrowing pods are followed", () => {
    const { patch = "" } = answer(plain, { app: "train", "sluice.dev/gpu-memory": "40G" });
    const ops = JSON.parse(Buffer.from(patch, "base64").toString()) as { path: string; value: unknown }[];
    const value = (path: string) => ops.find((op) => op.path === path)?.value;
    expect(value("/metadata/labels")).toEqual({ app: "train", "sluice.dev/gpu-memory": "40G", "sluice.dev/gpu": "" });
    expect(JSON.stringify(value("/spec/initContainers"))).toContain("--gpu=40G");
    expect(answer(plain, { "sluice.dev/gpu-team": "nlp" })).toEqual({ uid: "u", allowed: true });
  });

  it("names the secrets of the client's registry beside the pod's own, each once", () => {
    const registries = { ...around, settings: { ...settings, imagePullSecrets: ["clients", "own"] } };
    const named = { ...plain, spec: { containers: [], ...plain.spec, imagePullSecrets: [{ name: "own" }] } };
    const secrets = [{ name: "own" }, { name: "clients" }];
    expect(borrowingPod(named, wish, registries).spec?.imagePullSecrets).toEqual(secrets);
    expect(borrowingPod(plain, wish, registries).spec?.imagePullSecrets).toHaveLength(2);
    // Where there are none, those that the pod's account brings stay.
    expect(borrowingPod(plain, wish, around).spec).not.toHaveProperty("imagePullSecrets");
  });

  it("is no patch for a pod that has been through here", () => {
    expect(answer(borrowingPod(plain, wish, around))).toEqual({ uid: "u", allowed: true });
  });

  it("is the reason, when it cannot be", () => {
    const said = (...input: Parameters<typeof review>) => answer(...input).status?.message;
    expect(said(plain, { "sluice.dev/gpu": "lots" })).toContain("is not an amount");
    const absent = { ...plain, metadata: { annotations: { "sluice.dev/gpu-containers": "other" } } };
    expect(said(absent)).toContain("does not have: other");
  });
});

describe("What a borrowing pod's state means", () => {
  const terminated = (exitCode: number, message?: string) => ({ terminated: { exitCode, message } });
  const program = (state: object) => ({ containerStatuses: [{ name: "main", state }] }) as V1Pod["status"];

  it("has ended when its programs have, and not while one may run again", () => {
    expect(hasEnded({ status: { phase: "Succeeded" } })).toBe(true);
    expect(hasEnded({ status: { phase: "Running", ...program(terminated(1)) } })).toBe(false);
    const going = { deletionTimestamp: new Date() };
    expect(hasEnded({ metadata: going, status: program({ running: {} }) })).toBe(false);
    expect(hasEnded({ metadata: going, status: program(terminated(0)) })).toBe(true);
    expect(hasEnded({ metadata: going })).toBe(true);
  });

  it("tells why its start was ended, once for each time", () => {
    const status = { name: "sluice-check-0", restartCount: 2, state: terminated(125, "no glibc\n") };
    const refusal = refusalOf({ status: { initContainerStatuses: [status] } as V1Pod["status"] });
    expect(refusal).toEqual({ about: "sluice-check-0 2", message: "no glibc" });
    const pod = { metadata: { name: "train", namespace: "ml", uid: "1" } };
    const at = new Date();
    const event = (about: string) => podEvent(pod, { about, reason: "GpuNotBorrowed", message: "m" }, at).metadata.name;
    expect(event("a")).toBe(event("a"));
    expect(event("a")).not.toBe(event("b"));
    const own = { name: "data", restartCount: 0, state: terminated(1) };
    expect(refusalOf({ status: { initContainerStatuses: [own] } as V1Pod["status"] })).toBeUndefined();
  });
});
