/** What the cluster's processes read at start, as text of their files. */
import path from "node:path";
import { type Cluster, POOL, socketOf } from "#scripts/cluster/place.ts";

/** The image that holds a pod's namespaces; loaded before the first pod (see images.ts). */
export const PAUSE_IMAGE = "localhost/pause:1";

/** For kubectl and the components: everybody here is the admin. */
export function kubeconfig({ address, dir }: Cluster): string {
  const pki = (name: string) => path.join(dir, "pki", name);
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "admin",
    clusters: [
      { name: "test", cluster: { server: `https://${address}:6443`, "certificate-authority": pki("ca.crt") } },
    ],
    users: [{ name: "admin", user: { "client-certificate": pki("admin.crt"), "client-key": pki("admin.key") } }],
    contexts: [{ name: "admin", context: { cluster: "test", user: "admin" } }],
  });
}

export function kubeletConfig(cluster: Cluster): string {
  const { dir, address, controlGroup, pool } = cluster;
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address,
    containerRuntimeEndpoint: `unix://${socketOf(cluster)}`,
    cgroupDriver: "cgroupfs",
    // A kubelet ends what it finds in its own control group and does not know.
    cgroupRoot: controlGroup,
    // Test machines may still have version 1.
    failCgroupV1: false,
    failSwapOn: false,
    syncFrequency: "2s",
    nodeStatusUpdateFrequency: "2s",
    // How full a pod's own volumes are.
    volumeStatsAggPeriod: "2s",
    maxOpenFiles: 4096,
    // Test files run at the same time: one that waits for its registry holds up no other.
    serializeImagePulls: false,
    // A sandbox may not be allowed to change it.
    oomScoreAdj: 0,
    podLogsDir: path.join(dir, "kubelet", "logs"),
    volumePluginDir: path.join(dir, "kubelet", "plugins"),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: path.join(dir, "pki", "ca.crt") },
    },
    authorization: { mode: "AlwaysAllow" },
    registerWithTaints: pool === undefined ? [] : [{ key: POOL, value: pool, effect: "NoSchedule" }],
    evictionHard: { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    // One that a pod pulled with a secret is for others with that secret; those of the tests are everybody's all the same.
    imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages",
    preloadedImagesVerificationAllowlist: ["localhost/*"],
    // Images are loaded once, before the tests; none may be collected as unused.
    imageGCHighThresholdPercent: 100,
  });
}

export function containerdConfig(cluster: Cluster): string {
  const { dir } = cluster;
  return `version = 2
root = "${dir}/containerd/root"
state = "${dir}/containerd/state"
oom_score = 0

[grpc]
  address = "${socketOf(cluster)}"

[plugins."io.containerd.grpc.v1.cri"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  sandbox_image = "${PAUSE_IMAGE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${dir}/cni"
`;
}

export function podNetwork({ dir, pods }: Cluster): string {
  const ipam = {
    type: "host-local",
    dataDir: `${dir}/cni/addresses`,
    ranges: [[{ subnet: pods }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  return JSON.stringify({
    cniVersion: "0.4.0",
    name: "pods",
    plugins: [
      { type: "bridge", bridge: "cni0", isGateway: true, ipMasq: true, hairpinMode: true, ipam },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
}
