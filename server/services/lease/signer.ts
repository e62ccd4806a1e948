/** The key that signs session tokens. gpud verifies them offline with its public half. */
import { createPrivateKey } from "node:crypto";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import { z } from "zod";
import { keptKey } from "#server/auth/keys.ts";
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
  const text = env.SLUICE_SIGNING_KEY ?? (await keptKey(env.SLUICE_STATE_DIR, "session-signing.jwk", makeKey));
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

async function makeKey(): Promise<string> {
  const { privateKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  return JSON.stringify(await exportJWK(privateKey));
}
