/** Kubernetes as one program, compiled from its published modules; kept outside the checkout for all of them. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.ts";
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

/** Where the components' programs lie once they are built. */
export function kubernetesFolder(): string {
  return cacheFolder(`kubernetes-${kubernetesVersion()}`);
}

/** Compiles what is missing: about six minutes on two cores the first time. */
export async function buildKubernetes(say: (line: string) => void): Promise<void> {
  const folder = kubernetesFolder();
  const program = path.join(folder, "kubernetes");
  await mkdir(folder, { recursive: true });
  if (!existsSync(program)) {
    const version = kubernetesVersion();
    say(`Building Kubernetes ${version} from its Go modules; the first time takes minutes`);
    const minor = version.split(".")[1];
    const stamps = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((module) => [
      `-X ${module}.gitVersion=${version}`,
      `-X ${module}.gitMajor=1`,
      `-X ${module}.gitMinor=${minor}`,
      `-X ${module}.gitTreeState=clean`,
    ]);
    const unfinished = `${program}.${process.pid}`;
    await run(
      "go",
      [
        "build",
        "-mod=readonly",
        "-trimpath",
        "-buildvcs=false",
        `-ldflags=-s -w ${stamps.join(" ")}`,
        "-o",
        unfinished,
        ".",
      ],
      {
        cwd: SOURCE,
        env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "" },
        background: true,
      },
    );
    await rename(unfinished, program);
  }
  for (const name of COMPONENTS) {
    const link = path.join(folder, name);
    if (existsSync(link)) continue;
    await rm(link, { force: true });
    await symlink("kubernetes", link);
  }
}
