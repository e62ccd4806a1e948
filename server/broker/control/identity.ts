/** How a gpud proves who it is: it signs the broker's challenge with the key it joined with. */
import { createPublicKey, randomBytes, verify } from "node:crypto";

const CONTEXT = Buffer.from("sluice-control-1", "ascii");

/** A fresh challenge: 32 bytes, base64url. */
export function newChallenge(): string {
  return randomBytes(32).toString("base64url");
}

/** Whether `signature` (base64url) is this key's over the context and the challenge. Wrong shapes are wrong signatures. */
export function provesKey(publicKey: string, challenge: string, signature: string): boolean {
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
    const message = Buffer.concat([CONTEXT, Buffer.from(challenge, "base64url")]);
    return verify(null, message, key, Buffer.from(signature, "base64url"));
  } catch {
    return false;
  }
}
