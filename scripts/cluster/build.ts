/** Kubernetes as one program, compiled from its published modules; kept outside the checkout for all of them. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { goBuildKey, goEnv } from "#scripts/cluster/go-program.ts";
import { cacheFolder } from "#scripts/lib/cache.mjs";
import { run } from "#scripts/lib/processes.ts";

const SOURCE = path.resolve(import.meta.dirname, "kubernetes");
const COMPONENTS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-proxy",
  "kube-scheduler",
  "kubectl",
  "kubelet",
];

/** The version that `kubernetes/go.mod` names, e.g. `v1.36.3`. */
export function kubernetesVersion(): string {
  const version = /k8s\.io\/kubernetes (v[\d.]+)/.exec(readFileSync(path.join(SOURCE, "go.mod"), "utf8"))?.[1];
  if (version === undefined) throw new Error(`${SOURCE}/go.mod does not require k8s.io/kubernetes.`);
  return version;
}

/** What the compiler is told; the components take their version from the stamps. */
function buildFlags(): string[] {
  const version = kubernetesVersion();
  const minor = version.split(".")[1];
  const stamps = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((module) => [
    `-X ${module}.gitVersion=${version}`,
    `-X ${module}.gitMajor=1`,
    `-X ${module}.gitMinor=${minor}`,
    `-X ${module}.gitTreeState=clean`,
  ]);
  return ["-mod=readonly", "-trimpath", "-buildvcs=false", `-ldflags=-s -w ${stamps.join(" ")}`];
}

let folder: string | undefined;

/** Where the components' programs lie once they are built. */
export function kubernetesFolder(): string {
  const sources = ["main.go", "go.mod", "go.sum"].map((name) => path.join(SOURCE, name));
  folder ??= cacheFolder(`kubernetes-${kubernetesVersion()}-${goBuildKey(buildFlags(), sources)}`);
  return folder;
}

/** Compiles what is missing: about six minutes on two cores the first time. */
export async function buildKubernetes(say: (line: string) => void): Promise<void> {
  const folder = kubernetesFolder();
  const program = path.join(folder, "kubernetes");
  await mkdir(folder, { recursive: true });
  if (!existsSync(program)) {
    say(`Building Kubernetes ${kubernetesVersion()} from its Go modules; the first time takes minutes`);
    const unfinished = `${program}.${process.pid}`;
    const words = ["build", ...buildFlags(), "-o", unfinished, "."];
    await run("go", words, { cwd: SOURCE, env: goEnv(), background: true });
    await rename(unfinished, program);
  }
  for (const name of COMPONENTS) {
    const link = path.join(folder, name);
    if (existsSync(link)) continue;
    await rm(link, { force: true });
    await symlink("kubernetes", link);
  }
}
