/** The installation's keys: given by the environment, else made once below the state directory. */
import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { env } from "#server/env.ts";
import { unfinishedName } from "#server/unfinished-name.ts";

/** Signs the portal's session cookie. */
export async function authSecret(): Promise<string> {
  return env().SLUICE_AUTH_SECRET ?? (await randomKey("auth-secret", 48));
}

/** 32 bytes that encrypt the variables of workspaces. */
export async function secretsKey(): Promise<Buffer> {
  return Buffer.from(env().SLUICE_SECRETS_KEY ?? (await randomKey("secrets-key", 32)), "base64url");
}

async function randomKey(name: string, bytes: number): Promise<string> {
  return await keptKey(env().SLUICE_STATE_DIR, name, async () => randomBytes(bytes).toString("base64url"));
}

/**
 * The key `name` of the installation at `stateDir`, made with `make` when there is none. Processes that start together
 * end up with the same one: the first to link its file wins.
 */
export async function keptKey(stateDir: string, name: string, make: () => Promise<string>): Promise<string> {
  const folder = path.join(stateDir, "keys");
  const file = path.join(folder, name);
  const existing = await readFile(file, "utf8").catch(() => undefined);
  if (existing !== undefined) return existing.trim();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const mine = unfinishedName(file);
  await writeFile(mine, await make(), { mode: 0o600, flag: "wx" });
  await link(mine, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(mine, { force: true });
  return (await readFile(file, "utf8")).trim();
}
