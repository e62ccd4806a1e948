/** The key that signs session tokens. gpud verifies them offline with its public half. */
import { createPrivateKey, randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import { z } from "zod";
import { type SessionTokenClaims, sessionTokenClaims } from "#server/contracts/session-token.ts";
import type { Env } from "#server/env.ts";

const ed25519Jwk = z.object({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: z.string(), d: z.string() });

export type Signer = {
  kid: string;
  /** Ed25519 public key, base64url. */
  publicKey: string;
  sign: (claims: SessionTokenClaims) => Promise<string>;
};

/** The key given by the environment, else `keys/session-signing.jwk` in the state directory, made on first use. */
export async function loadSigner(env: Pick<Env, "SLUICE_SIGNING_KEY" | "SLUICE_STATE_DIR">): Promise<Signer> {
  const text =
    env.SLUICE_SIGNING_KEY ?? (await keptKey(path.join(env.SLUICE_STATE_DIR, "keys", "session-signing.jwk")));
  const pem = text.startsWith("-----BEGIN");
  const jwk = ed25519Jwk.parse(pem ? createPrivateKey(text).export({ format: "jwk" }) : JSON.parse(text));
  const key = await importJWK(jwk, "EdDSA");
  const kid = await calculateJwkThumbprint(jwk);
  return {
    kid,
    publicKey: jwk.x,
    sign: async (claims) =>
      await new SignJWT(sessionTokenClaims.parse(claims))
        .setProtectedHeader({ alg: "EdDSA", kid, typ: "JWT" })
        .sign(key),
  };
}

/** Several brokers may start at once on an empty state directory: the first file wins, and all use it. */
async function keptKey(file: string): Promise<string> {
  const known = await readFile(file, "utf8").catch(() => undefined);
  if (known !== undefined) return known;
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const { privateKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  const made = `${file}.${randomBytes(6).toString("hex")}`;
  await writeFile(made, JSON.stringify(await exportJWK(privateKey)), { mode: 0o600 });
  await link(made, file).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  });
  await rm(made);
  return await readFile(file, "utf8");
}
