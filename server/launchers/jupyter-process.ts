/** How a workspace's Jupyter server is started, and what every launcher puts into its environment. */
import type { WorkspaceSpec } from "./launcher.ts";
import type { Layout } from "./layout.ts";

/** A TCP port in a pod, whose network is its own; a Unix socket on this machine. */
export type Listening = { address: string; port: number } | { socket: string };

/** The token is not here: argv is readable to every process of the machine. */
export function jupyterCommand(layout: Layout, listening: Listening): string[] {
  return [
    `${layout.environment}/bin/python`,
    ...["-m", "jupyterlab"],
    "--no-browser",
    ...listeningOptions(listening),
    "--ServerApp.base_url=/",
    "--ServerApp.allow_remote_access=True",
    `--ServerApp.root_dir=${layout.home}`,
  ];
}

function listeningOptions(listening: Listening): string[] {
  if ("socket" in listening) return [`--ServerApp.sock=${listening.socket}`, "--ServerApp.sock_mode=0600"];
  const { address, port } = listening;
  return [`--ServerApp.ip=${address}`, `--ServerApp.port=${port}`, "--ServerApp.port_retries=0"];
}

/** What Sluice sets for the processes of a workspace; what their owner has set comes before it and cannot replace it. */
export function jupyterVariables(spec: WorkspaceSpec, layout: Layout): Record<string, string> {
  return {
    LANG: "C.UTF-8",
    SHELL: "/bin/bash",
    USER: "user",
    HOME: layout.home,
    TMPDIR: layout.tmp,
    PATH: [
      `${layout.packages}/bin`,
      `${layout.packages}/commands`,
      `${layout.environment}/bin`,
      "/usr/local/bin",
      "/usr/bin",
      "/bin",
      "/usr/sbin",
      "/sbin",
    ].join(":"),
    VIRTUAL_ENV: layout.packages,
    PIP_DISABLE_PIP_VERSION_CHECK: "1",
    // Its cache lies in the home, mostly on another file system than the packages: links fail there.
    UV_LINK_MODE: "copy",
    JUPYTER_CONFIG_PATH: [layout.jupyterConfig, `${layout.packages}/jupyter`].join(":"),
    // The server's interpreter is the environment's, that of commands the overlay's: both find the same files.
    JUPYTER_PATH: [
      `${layout.run}/jupyter`,
      ...[layout.packages, layout.environment].map((at) => `${at}/share/jupyter`),
    ].join(":"),
    JUPYTERLAB_DIR: `${layout.environment}/share/jupyter/lab`,
    JUPYTER_RUNTIME_DIR: `${layout.run}/jupyter/runtime`,
    SLUICE_WORKSPACE_ID: spec.id,
    SLUICE_BROKER_URL: spec.brokerUrl,
    SLUICE_PORTAL_URL: spec.portalUrl,
    SLUICE_PUBLIC_URL: spec.publicUrl,
    SLUICE_CREDENTIAL_FILE: `${layout.run}/credential`,
    SLUICE_RUNTIME_DIR: `${layout.run}/runtime`,
    SLUICE_GPU_TYPE: spec.gpuType,
    ...sizeVariables(spec),
  };
}

/** What programs go by: the names that notebook servers know, and how many threads are worth starting. */
function sizeVariables({ size }: WorkspaceSpec): Record<string, string> {
  if (size === undefined) return {};
  const threads = String(Math.max(1, Math.ceil(size.cpuMilli / 1000)));
  return {
    CPU_LIMIT: String(size.cpuMilli / 1000),
    MEM_LIMIT: String(size.memoryBytes),
    ...{ OMP_NUM_THREADS: threads, OPENBLAS_NUM_THREADS: threads, MKL_NUM_THREADS: threads },
    NUMEXPR_MAX_THREADS: threads,
  };
}
