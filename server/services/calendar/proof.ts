import type { PackingProof } from "#server/contracts/sharing.ts";
import { SluiceError } from "#server/errors.ts";

/** What proving has come to: what is left over, or the refusal with the packing that shows it. */
export async function proofOf(prove: () => Promise<number>): Promise<PackingProof> {
  try {
    return { refusal: null, at: null, packing: [], spareMilli: await prove() };
  } catch (error) {
    if (!(error instanceof SluiceError) || (error.code !== "quota" && error.code !== "invalid")) throw error;
    const { at = null, packing = [] } = (error.detail ?? {}) as Partial<Pick<PackingProof, "at" | "packing">>;
    return { refusal: error.message.replace(/^[a-z][A-Za-z.]*: /, ""), at, packing, spareMilli: 0 };
  }
}
