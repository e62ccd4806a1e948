/** Which launchers this installation has, and which of them runs an environment. */
import { env } from "#server/env.ts";
import { clusterSettings } from "./kubernetes/settings.ts";
import type { EgressPolicyOf } from "./kubernetes/teams.ts";
import type { Launcher } from "./launcher.ts";

type Options = { egressPolicyOf: EgressPolicyOf };

/** The launchers that SLUICE_LAUNCHERS names. Each is loaded only when it is wanted: some bring large libraries. */
export async function configuredLaunchers(options: Options): Promise<Map<string, Launcher>> {
  const launchers = new Map<string, Launcher>();
  for (const name of env().SLUICE_LAUNCHERS) launchers.set(name, await load(name, options));
  return launchers;
}

async function load(name: string, { egressPolicyOf }: Options): Promise<Launcher> {
  const { SLUICE_STATE_DIR: stateDir, SLUICE_WHEEL: wheel } = env();
  switch (name) {
    case "local": {
      const { LocalLauncher, prepareStateDir } = await import("./local/local-launcher.ts");
      await prepareStateDir(stateDir);
      const { SLUICE_WORKSPACE_FILES_GIB: filesGib, SLUICE_LOCAL_MEMORY_GIB: memoryGib } = env();
      const memory = memoryGib === undefined ? {} : { memoryBytes: memoryGib * 1024 ** 3 };
      return new LocalLauncher({ stateDir, wheel, filesBytes: filesGib * 1024 ** 3, ...memory });
    }
    case "kubernetes": {
      const settings = await clusterSettings();
      if (settings === undefined)
        throw new Error(
          "SLUICE_LAUNCHERS names kubernetes: SLUICE_KUBERNETES_SETTINGS must name its settings, a JSON file.",
        );
      const { KubernetesLauncher } = await import("./kubernetes/kubernetes-launcher.ts");
      return new KubernetesLauncher(settings, egressPolicyOf);
    }
    default:
      throw new Error(`SLUICE_LAUNCHERS names "${name}"; this version knows: local, kubernetes.`);
  }
}
