import type { FoundTopic } from "#server/contracts/live.ts";
import { database } from "#server/db/client.ts";
import { createFound, type Found } from "#server/http/found-topic.ts";
import { subscribe } from "#server/live.ts";
import { watchHealth } from "#server/services/health/watch.ts";
import { watchConcerned } from "#server/services/lease/watch-concerned.ts";

const shared = globalThis as typeof globalThis & { __sluiceFound?: Record<FoundTopic, Found> };

/** The process's own: Next bundles routes apart, and they share one search. */
export function foundTopics(): Record<FoundTopic, Found> {
  shared.__sluiceFound ??= {
    mine: createFound((tell) => watchConcerned({ db: database().db, subscribe }, tell)),
    health: createFound((tell) => watchHealth(database().db, () => tell(null))),
  };
  return shared.__sluiceFound;
}
