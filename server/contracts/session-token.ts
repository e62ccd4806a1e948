/**
 * The session token: an EdDSA (Ed25519) JWT with which one client process opens one session on one gpud.
 * gpud verifies it offline with the broker's public keys; the client proves possession of `cnf` in the hello.
 */
import { z } from "zod";

export const sessionTokenClaims = z.strictObject({
  iss: z.literal("sluice"),
  /** `gpud:<gpu server id>`: a token of another gpud is refused. */
  aud: z.string(),
  /** Workspace id. */
  sub: z.string(),
  jti: z.string(),
  iat: z.int(),
  /** At most ten minutes after iat: the time to connect, not the length of the session. */
  exp: z.int(),
  /** Session id, one for each client process and lease. */
  sid: z.string(),
  /** The client's ephemeral Ed25519 public key, base64url. */
  cnf: z.strictObject({ ed25519: z.string() }),
  lease: z.strictObject({
    id: z.string(),
    /** The epoch of the gpud under which the lease was granted. */
    epoch: z.int(),
    deviceUuid: z.string(),
    milli: z.int(),
    /** Thousandths of the device that the lease never gets more than, also while it is alone; absent: all of it. */
    ceilingMilli: z.int().min(1).max(1000).optional(),
    memoryBytes: z.int(),
    gpuType: z.string(),
    /** End of the lease, seconds since 1970. */
    expiresAt: z.int(),
  }),
});
export type SessionTokenClaims = z.infer<typeof sessionTokenClaims>;
