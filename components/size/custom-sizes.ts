import type { CustomSizes } from "#server/contracts/workspace-size.ts";

/** Who may choose cores and memory freely, as it is shown. */
export const CUSTOM_SIZES: Record<CustomSizes, string> = {
  nobody: "Nobody",
  leads: "Team leads and admins",
  everybody: "Everybody",
};
