import { hash, verify } from "@node-rs/argon2";
import { WorkQueue } from "#server/work-queue.ts";

const shared = globalThis as typeof globalThis & { __sluicePasswords?: WorkQueue };

/**
 * Everything that hashes a password in this process goes through it: one takes 19 MiB and a core for tens of
 * milliseconds, and anybody may ask for it. Next bundles routes apart, and they share one.
 */
export function passwordWork(): WorkQueue {
  shared.__sluicePasswords ??= new WorkQueue({
    ...{ maxRunning: 2, maxWaiting: 100, retryAfterSeconds: 10 },
    // One network cannot fill the queue, and many cannot fill it for people who sign in from where they work.
    maxWaitingUnproved: { ofOne: 4, ofAll: 50 },
    refusal: "Too many people are signing in at once. Try again in a few seconds.",
  });
  return shared.__sluicePasswords;
}

/** argon2id with the library's defaults (19 MiB, 2 passes), which are OWASP's. */
export async function hashPassword(password: string): Promise<string> {
  return await passwordWork().run(async () => await hash(password));
}

/** Hash of a password that nobody has, so that an unknown e-mail takes as long as a wrong password. */
let nobodysHash: string | undefined;

/**
 * Whether the password is right; takes the same time when there is no such person. `strangersNetwork`: the network of a
 * client that is not known to be the person.
 */
export async function verifyPassword(
  passwordHash: string | null,
  password: string,
  strangersNetwork?: string,
): Promise<boolean> {
  return await passwordWork().run(async () => {
    nobodysHash ??= await hash("nobody has this password");
    const right = await verify(passwordHash ?? nobodysHash, password);
    return right && passwordHash !== null;
  }, strangersNetwork);
}
