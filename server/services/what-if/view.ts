import { type WhatIfView, whatIfInput, whatIfResult } from "#server/contracts/what-if.ts";
import type { whatIfs } from "#server/db/schema/index.ts";

/** A question as the API tells it. */
export function viewOf(row: typeof whatIfs.$inferSelect): WhatIfView {
  return {
    id: row.id,
    state: row.state,
    progress: row.progress,
    message: row.message,
    question: whatIfInput.parse(row.question),
    askedAt: row.createdAt.toISOString(),
    result: row.result === null ? null : whatIfResult.parse(row.result),
  };
}
