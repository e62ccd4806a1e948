import { hash, verify } from "@node-rs/argon2";

/** argon2id with the library's defaults (19 MiB, 2 passes), which are OWASP's. */
export async function hashPassword(password: string): Promise<string> {
  return await hash(password);
}

/** Hash of a password that nobody has, so that an unknown e-mail takes as long as a wrong password. */
let nobodysHash: Promise<string> | undefined;

/** Whether the password is right; takes the same time when there is no such person. */
export async function verifyPassword(passwordHash: string | null, password: string): Promise<boolean> {
  nobodysHash ??= hash("nobody has this password");
  const right = await verify(passwordHash ?? (await nobodysHash), password);
  return right && passwordHash !== null;
}
