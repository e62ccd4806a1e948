import { isUniqueViolation, SluiceError } from "#server/errors.ts";

/**
 * Runs a write of a workspace's name, and reports a duplicate. Names are unique per owner among workspaces that are not
 * removed. `who` begins the error with the owner, who may differ from the caller.
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
