import { isUniqueViolation, SluiceError } from "#server/errors.ts";

/**
 * Runs a write of a workspace's name; an owner's names are unique among what is not removed. `who` is that owner:
 * not always the person who asks.
 */
export async function refuseTakenName<T>(
  name: string | undefined,
  write: () => Promise<T>,
  who = "You have",
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const named = name === undefined ? "of this name" : `named "${name}"`;
    throw new SluiceError("conflict", `name: ${who} a workspace ${named} already. Choose another name.`);
  }
}
