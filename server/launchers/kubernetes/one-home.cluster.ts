/** Two pods of one workspace never have its home at one time, however late a launcher's watch is. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { Transform, type TransformCallback } from "node:stream";
import { type V1Pod, Watch } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { DEFAULT_EGRESS_POLICY } from "#server/contracts/egress.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { loadConfig } from "./cluster-client.ts";
import { KubernetesLauncher } from "./kubernetes-launcher.ts";
import { podName, WORKSPACE_LABEL } from "./objects.ts";
import { makeVolumes, smallSettings, storageClassOf, testCluster } from "./testing.ts";

const cluster = testCluster();
const settings = smallSettings(cluster, "one-home");
const report = { started: () => undefined, done: () => undefined, log: () => undefined };
const egressPolicyOf = async () => DEFAULT_EGRESS_POLICY;
const { signal } = new AbortController();

let dropVolumes: () => Promise<void>;
beforeAll(async () => {
  dropVolumes = await makeVolumes(cluster, 1, { storageClass: storageClassOf(settings.namespacePrefix) });
});
afterAll(async () => await dropVolumes?.());

const kubeconfigSchema = z.object({
  clusters: z.tuple([z.object({ cluster: z.object({ server: z.url(), "certificate-authority": z.string() }) })]),
  users: z.tuple([z.object({ user: z.object({ "client-certificate": z.string(), "client-key": z.string() }) })]),
});

/** The cluster's API, whose watches of pods tell nothing while it holds them back. */
async function startLateApi() {
  const text = await readFile(cluster.kubeconfig, "utf8");
  const { clusters, users } = kubeconfigSchema.parse(JSON.parse(text));
  const [{ cluster: api }] = clusters;
  const [{ user }] = users;
  const ca = await readFile(api["certificate-authority"]);
  const cert = await readFile(user["client-certificate"]);
  const key = await readFile(user["client-key"]);
  let held: (() => void)[] | undefined;
  const later = () =>
    new Transform({
      transform(chunk: Buffer, _encoding, done: TransformCallback) {
        if (held === undefined) done(null, chunk);
        else held.push(() => done(null, chunk));
      },
    });
  const server = createServer((asked, answer) => {
    const { method, headers } = asked;
    const passed = request(new URL(asked.url ?? "/", api.server), { method, headers, ca, cert, key }, (said) => {
      answer.writeHead(said.statusCode ?? 502, said.headers);
      answer.flushHeaders();
      const watches = /^\/api\/v1\/pods\?.*watch=true/.test(asked.url ?? "");
      (watches ? said.pipe(later()) : said).pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = path.join(cluster.folder, "late.conf");
  const place = { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true };
  await writeFile(
    kubeconfig,
    JSON.stringify({
      ...{ apiVersion: "v1", kind: "Config", "current-context": "late", users: [{ name: "late", user: {} }] },
      clusters: [{ name: "late", cluster: place }],
      contexts: [{ name: "late", context: { cluster: "late", user: "late" } }],
    }),
  );
  return {
    kubeconfig,
    hold: () => {
      held = [];
    },
    release: () => {
      const waiting = held ?? [];
      held = undefined;
      for (const go of waiting) go();
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(kubeconfig);
    },
  };
}

/** The names of a workspace's pods that were there at one time, each time that this changed. */
async function recordPods(id: string) {
  const there = new Set<string>();
  const seen: string[][] = [];
  const watch = new Watch(loadConfig(cluster.kubeconfig));
  const hear = (what: string, { metadata }: V1Pod) => {
    if (what === "ADDED") there.add(metadata?.name ?? "");
    else if (what === "DELETED") there.delete(metadata?.name ?? "");
    else return;
    seen.push([...there]);
  };
  const labelSelector = `${WORKSPACE_LABEL}=${id}`;
  const watching = await watch.watch("/api/v1/pods", { labelSelector }, hear, () => undefined);
  return { seen, stop: () => watching.abort() };
}

it("ends a pod that its watch does not tell of before it makes the next", async () => {
  const api = await startLateApi();
  const prompt = new KubernetesLauncher(settings, egressPolicyOf);
  const late = new KubernetesLauncher({ ...settings, kubeconfig: api.kubeconfig }, egressPolicyOf);
  const spec = aWorkspaceSpec();
  onTestFinished(async () => {
    api.release();
    await late.close();
    await prompt.remove(spec.id);
    await prompt.close();
    await api.stop();
  });
  // Its watches have begun.
  expect(await late.observe(spec.id)).toEqual({ state: "stopped" });
  api.hold();
  const { seen, stop } = await recordPods(spec.id);
  onTestFinished(stop);
  await prompt.ensure(spec, report, signal);
  expect(await late.observe(spec.id)).toEqual({ state: "stopped" });

  const next = { ...spec, generation: 2 };
  const made = late.ensure(next, report, signal);
  const [first, second] = [podName(spec), podName(next)];
  await expect.poll(() => seen, { timeout: 120_000 }).toEqual([[first], [], [second]]);
  api.release();
  expect((await made).handle.generation).toBe(2);
  expect(seen).toHaveLength(3);
});
