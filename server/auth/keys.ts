/** The installation's keys: given by the environment, else made once below the state directory. */
import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { env } from "#server/env.ts";

/** Signs the portal's session cookie. */
export async function authSecret(): Promise<string> {
  return env().SLUICE_AUTH_SECRET ?? (await keepKey("auth-secret", async () => randomBytes(48).toString("base64url")));
}

/** Ed25519 private key (JWK) with which the broker signs session tokens; `kid` names it. */
export async function signingKey(): Promise<JWK> {
  const text = env().SLUICE_SIGNING_KEY ?? (await keepKey("session-signing.jwk", makeSigningKey));
  return JSON.parse(text) as JWK;
}

/** 32 bytes that encrypt the variables of workspaces. */
export async function secretsKey(): Promise<Buffer> {
  const text =
    env().SLUICE_SECRETS_KEY ?? (await keepKey("secrets-key", async () => randomBytes(32).toString("base64url")));
  return Buffer.from(text, "base64url");
}

async function makeSigningKey(): Promise<string> {
  const { privateKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  const jwk = await exportJWK(privateKey);
  return JSON.stringify({ ...jwk, kid: randomBytes(8).toString("hex"), alg: "EdDSA" });
}

/** Processes that start together end up with the same key: the first to link its file wins. */
async function keepKey(name: string, make: () => Promise<string>): Promise<string> {
  const folder = path.join(env().SLUICE_STATE_DIR, "keys");
  const file = path.join(folder, name);
  const existing = await readFile(file, "utf8").catch(() => undefined);
  if (existing !== undefined) return existing.trim();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const mine = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeFile(mine, await make(), { mode: 0o600, flag: "wx" });
  await link(mine, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(mine, { force: true });
  return (await readFile(file, "utf8")).trim();
}
