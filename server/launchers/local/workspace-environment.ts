/** The environment variables of every process in a local workspace. */
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { jupyterVariables } from "#server/launchers/jupyter-process.ts";
import type { WorkspaceSpec } from "#server/launchers/launcher.ts";
import type { Layout } from "#server/launchers/layout.ts";
import type { BuiltEnvironment } from "./environment.ts";
import { frameworkConditions, frameworkVariables, readFrameworkSettings } from "./framework-variables.ts";
import { BROKER_INSIDE, EGRESS_PORT, proxyVariables } from "./network.ts";

/** The host's proxies, for workspaces in the host's network. A workspace with its own network uses the egress proxy. */
const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/** The variables of the installation that every workspace gets: package indexes, certificates and time zone. */
const PASSED_ON = [
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

/** What the programs that make a sandbox are looked for in. None of these folders is a workspace's. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The environment of the programs that start a workspace. They run with the rights of the installation, and a C library
 * loads code by variables such as GCONV_PATH. A workspace's variables therefore have a prefix until `init.sh`, inside
 * of the sandbox, removes it.
 */
export function startEnvironment(variables: Readonly<Record<string, string>>): Record<string, string> {
  const prefixed = Object.entries(variables).map(([name, value]): [string, string] => [`SLUICE_SET_${name}`, value]);
  return { PATH: SYSTEM_PATH, LANG: "C.UTF-8", ...Object.fromEntries<string>(prefixed) };
}

export async function workspaceEnvironment(
  spec: WorkspaceSpec,
  layout: Layout,
  environment: BuiltEnvironment,
  network: "own" | "host",
): Promise<Record<string, string>> {
  const names = network === "own" ? PASSED_ON : [...PASSED_ON, ...PROXIES];
  const passedOn = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  const sluice = `lib/python${environment.pythonVersion}/site-packages/sluice_gpu`;
  const libraries = path.join(environment.path, sluice, "lib");
  const frameworks = frameworkVariables(await readFrameworkSettings(path.join(environment.path, sluice)), {
    conditions: frameworkConditions(spec.gpuType, existsSync(libraries) ? readdirSync(libraries) : []),
    places: { libraries: `${layout.environment}/${sluice}/lib`, tools: `${layout.environment}/${sluice}/tools` },
  });
  return {
    ...definedOnly(passedOn),
    ...(network === "own" ? proxyVariables() : {}),
    ...frameworks,
    ...environment.env,
    // Before what Sluice sets itself, so that none of that can be replaced.
    ...spec.variables,
    ...jupyterVariables(spec, layout),
    ...(network === "own" ? { SLUICE_BROKER_URL: BROKER_INSIDE, SLUICE_GPUD_PROXY: `127.0.0.1:${EGRESS_PORT}` } : {}),
    // Programs other than Python find the CUDA libraries here; Python has a start-up hook of its own.
    LD_LIBRARY_PATH: `${layout.environment}/${sluice}/lib`,
    // Large copies to a GPU of this machine go through memory that both sides share.
    SLUICE_GPUD_SOCKETS: layout.gpuds,
    JUPYTER_TOKEN: spec.serverToken,
  };
}

function definedOnly(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
