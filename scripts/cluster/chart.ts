/** The chart as Helm renders it, for tests of what it makes of its values. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { dumpYaml, type KubernetesObject, loadAllYaml } from "@kubernetes/client-node";
import { expect } from "vitest";
import { kubernetesFolder, kubernetesVersion } from "#scripts/cluster/build.ts";
import type { TestCluster } from "#server/launchers/kubernetes/testing.ts";

const execute = promisify(execFile);

/** What cannot be left out, and much of what can. */
export const values = {
  portal: { url: "https://sluice.example.com" },
  gateway: { url: "https://notebooks.example.com", host: "notebooks.example.com" },
  database: { existingSecret: "sluice-database" },
  // With a path, as Keycloak, Entra and Okta have it.
  oidc: { issuer: "https://login.example.com/realms/lab", existingSecret: "sluice-oidc" },
  imagePullSecrets: ["registry-a", "registry-b"],
  ingress: { enabled: true, className: "nginx", tlsSecret: "sluice-tls" },
  metrics: { serviceMonitor: { enabled: true }, dashboard: { enabled: true } },
  workspaces: { imagePullSecrets: ["registry-c"] },
  gpud: { updateAfterSeconds: 60 },
};

/** The objects that Helm makes of these values. */
export async function template(
  { helm }: Pick<TestCluster, "helm">,
  given: object,
  ...more: string[]
): Promise<KubernetesObject[]> {
  const chart = path.resolve("deploy/helm/sluice");
  const args = ["template", "sluice", chart, "--kube-version", kubernetesVersion(), "--values", "-", ...more];
  const running = execute(helm, args, { maxBuffer: 1 << 24 });
  running.child.stdin?.end(JSON.stringify(given));
  return loadAllYaml((await running).stdout).filter((object: unknown): object is KubernetesObject => object !== null);
}

/** Whether a real API server would make each of these; gives what it warns of. */
export async function isTaken(
  { kubeconfig }: Pick<TestCluster, "kubeconfig">,
  made: KubernetesObject[],
  namespace = "default",
): Promise<string[]> {
  const place = ["--kubeconfig", kubeconfig, "--namespace", namespace];
  const kubectl = path.join(kubernetesFolder(), "kubectl");
  const running = execute(kubectl, [...place, "apply", "--dry-run=server", "--filename", "-"]);
  running.child.stdin?.end(made.map((object) => dumpYaml(object)).join("\n---\n"));
  const { stdout, stderr } = await running;
  expect(stdout.trim().split("\n")).toHaveLength(made.length);
  return stderr.match(/^Warning: .*$/gm) ?? [];
}
