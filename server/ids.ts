/** Ids and secrets. An id is a type prefix and a UUIDv7 in lower-case base32: valid as DNS label and Kubernetes name. */
import { createHash, randomBytes } from "node:crypto";

export type IdPrefix =
  | "usr"
  | "ses"
  | "pat"
  | "otc"
  | "team"
  | "ws"
  | "pod"
  | "img"
  | "imv"
  | "gsv"
  | "gpu"
  | "req"
  | "lea"
  | "gws"
  | "stp"
  | "rsv"
  | "qrq"
  | "win"
  | "ntc"
  | "wif"
  | "dst"
  | "igr"
  | "siz";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** RFC 4648 base32 in lower case, without padding. */
export function base32(bytes: Uint8Array): string {
  let out = "";
  let buffer = 0;
  let bits = 0;
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += ALPHABET.charAt((buffer >>> bits) & 31);
      buffer &= (1 << bits) - 1;
    }
  }
  if (bits > 0) out += ALPHABET.charAt((buffer << (5 - bits)) & 31);
  return out;
}

/** The 16 bytes of a UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then random bits. */
export function uuidv7(nowMs: number = Date.now()): Uint8Array {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes;
}

/** A new id such as `ws-ahqxk…` (prefix and 26 characters); ids sort by the time they were made. */
export function newId<P extends IdPrefix>(prefix: P): `${P}-${string}` {
  return `${prefix}-${base32(uuidv7())}`;
}

export type SecretPrefix = "slp" | "slw" | "slj";

/** A new bearer secret: `slp_` personal token, `slw_` workspace credential, `slj_` gpud join token. */
export function newSecret(prefix: SecretPrefix): string {
  return `${prefix}_${newCode()}`;
}

/** A one-time code: 32 random bytes, base64url. */
export function newCode(): string {
  return randomBytes(32).toString("base64url");
}

/** What the database keeps of a secret: its SHA-256 in hex. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Whether text is the id of a workspace, and so safe as the name of a folder. */
export function isWorkspaceId(text: string): boolean {
  return /^ws-[a-z2-7]{26}$/.test(text);
}
