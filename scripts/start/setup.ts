/** What a start does with the installation's own records: catalogue, first admin or set-up link, gpud's way in. */
import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { prepare } from "#server/services/setup/prepare.ts";

/** Prints the portal's address and, until there is an admin, the one-time set-up link. */
export async function announce(db: Database, portalUrl: string): Promise<void> {
  const prepared = await prepare(systemContext(db));
  console.log(`\n  Portal      ${portalUrl}`);
  if (prepared.state === "link") console.log(`  Set-up link ${prepared.link}   (once, for 24 hours)`);
  else if (prepared.passwordLink) console.log(`  New password ${prepared.passwordLink.link}   (once, for 24 hours)`);
  if (process.env.SSH_CONNECTION !== undefined) {
    const ports = [process.env.SLUICE_PORTAL_PORT, process.env.SLUICE_GATEWAY_PORT];
    const forwards = ports.map((port) => `-L ${port}:127.0.0.1:${port}`).join(" ");
    console.log(`  Over SSH    ssh ${forwards} <this host>   on your own machine, then open the address there`);
  }
  console.log("");
}

/** A one-time token for the gpud that this start runs. */
export async function makeJoinToken(db: Database): Promise<string> {
  const { token } = await createJoinToken(systemContext(db), {});
  return token;
}
