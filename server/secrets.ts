/** Secrets at rest: AES-256-GCM under the installation's key, bound to what they belong to. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { secretsKey } from "#server/auth/keys.ts";

const VERSION = "v1";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** `text` as it may be stored; it can be opened again only under the same key and for the same `owner`. */
export async function seal(text: string, owner: string): Promise<string> {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", await secretsKey(), nonce).setAAD(Buffer.from(owner));
  const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `${VERSION}.${sealed.toString("base64url")}`;
}

/** What was sealed for this owner. Throws when the key, the owner or a single bit differs; the error holds no secret. */
export async function unseal(stored: string, owner: string): Promise<string> {
  const [version, body = ""] = stored.split(".");
  const bytes = Buffer.from(body, "base64url");
  try {
    if (version !== VERSION || bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error("unknown form");
    const decipher = createDecipheriv("aes-256-gcm", await secretsKey(), bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(owner))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    throw new Error(
      "A stored secret cannot be opened with this installation's key (keys/secrets-key or SLUICE_SECRETS_KEY). Set it again.",
    );
  }
}
