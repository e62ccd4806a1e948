import { cache } from "react";
import type { LeaseBoard } from "#server/contracts/lease-board.ts";
import { board } from "#server/services/lease/board.ts";
import { load, pageContext } from "../../page-context.ts";

/** What the person of this request and their teams hold and wait for, read once for all of a page that shows it. */
export const readBoard = cache(async (): Promise<LeaseBoard> => {
  const ctx = await pageContext();
  return await load(() => board(ctx, "teams"));
});
