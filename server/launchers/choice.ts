import { env } from "#server/env.ts";

/** The launcher for new workspaces of an environment; undefined when none is configured. */
export function launcherFor(environment: string): string | undefined {
  const { SLUICE_LAUNCHERS, SLUICE_ENVIRONMENT_LAUNCHERS } = env();
  return SLUICE_ENVIRONMENT_LAUNCHERS[environment] ?? SLUICE_LAUNCHERS[0];
}
