/** How a workspace's Jupyter server is started, and the environment variables of every process in it. */
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import type { WorkspaceSpec } from "#server/launchers/launcher.ts";
import type { BuiltEnvironment } from "./environment.ts";
import { frameworkConditions, frameworkVariables, readFrameworkSettings } from "./framework-variables.ts";
import type { Layout } from "./workspace-files.ts";

/** Of the installation's own variables only these: how to reach package indexes, and how to show time and text. */
const PASSED_ON = [
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "PIP_CERT",
  "PIP_DEFAULT_TIMEOUT",
  "PIP_EXTRA_INDEX_URL",
  "PIP_INDEX_URL",
  "PIP_TRUSTED_HOST",
  "REQUESTS_CA_BUNDLE",
  "SSL_CERT_DIR",
  "SSL_CERT_FILE",
  "TZ",
];

/** The token is not here: argv is readable to every process of the machine. */
export function jupyterCommand(layout: Layout, port: number): string[] {
  return [
    `${layout.environment}/bin/python`,
    ...["-m", "jupyterlab"],
    "--no-browser",
    "--ServerApp.ip=127.0.0.1",
    `--ServerApp.port=${port}`,
    "--ServerApp.port_retries=0",
    "--ServerApp.base_url=/",
    "--ServerApp.allow_remote_access=True",
    `--ServerApp.root_dir=${layout.home}`,
    // Only where nothing isolates and the installation itself runs as root.
    ...(process.getuid?.() === 0 ? ["--ServerApp.allow_root=True"] : []),
  ];
}

export function workspaceEnvironment(
  spec: WorkspaceSpec,
  layout: Layout,
  environment: BuiltEnvironment,
): Record<string, string> {
  const passedOn = Object.fromEntries(PASSED_ON.map((name) => [name, process.env[name]]));
  const sluice = `lib/python${environment.pythonVersion}/site-packages/sluice_gpu`;
  const libraries = path.join(environment.path, sluice, "lib");
  const frameworks = frameworkVariables(readFrameworkSettings(path.join(environment.path, sluice)), {
    conditions: frameworkConditions(spec.gpuType, existsSync(libraries) ? readdirSync(libraries) : []),
    places: { libraries: `${layout.environment}/${sluice}/lib`, tools: `${layout.environment}/${sluice}/tools` },
  });
  return {
    ...definedOnly(passedOn),
    ...frameworks,
    ...environment.env,
    // Before what Sluice sets itself, so that none of that can be replaced.
    ...spec.variables,
    LANG: "C.UTF-8",
    SHELL: "/bin/bash",
    USER: "user",
    HOME: layout.home,
    TMPDIR: layout.tmp,
    PATH: [
      `${layout.packages}/bin`,
      `${layout.environment}/bin`,
      "/usr/local/bin",
      "/usr/bin",
      "/bin",
      "/usr/sbin",
      "/sbin",
    ].join(":"),
    VIRTUAL_ENV: layout.packages,
    // Programs other than Python find the CUDA libraries here; Python has a start-up hook of its own.
    LD_LIBRARY_PATH: `${layout.environment}/${sluice}/lib`,
    PIP_DISABLE_PIP_VERSION_CHECK: "1",
    JUPYTER_TOKEN: spec.serverToken,
    JUPYTER_CONFIG_PATH: layout.jupyterConfig,
    JUPYTER_PATH: [`${layout.run}/jupyter`, `${layout.packages}/share/jupyter`].join(":"),
    JUPYTER_RUNTIME_DIR: `${layout.run}/jupyter/runtime`,
    SLUICE_WORKSPACE_ID: spec.id,
    SLUICE_BROKER_URL: spec.brokerUrl,
    SLUICE_PORTAL_URL: spec.portalUrl,
    SLUICE_PUBLIC_URL: spec.publicUrl,
    SLUICE_CREDENTIAL_FILE: `${layout.run}/credential`,
    SLUICE_RUNTIME_DIR: `${layout.run}/runtime`,
    SLUICE_GPU_TYPE: spec.gpuType,
  };
}

function definedOnly(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
