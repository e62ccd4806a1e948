import type { PublicTopic } from "#server/contracts/live.ts";
import { Follow } from "./follow.tsx";
import { renderedAt } from "./rendered-at.ts";

type Props = {
  topics: readonly PublicTopic[];
  /** The pace: between two renderings at least so many seconds, for a page that is dear to read; else a third of one. */
  seconds?: number;
};

/** Renders the page again on the server when one of the topics has changed since it was read. */
export function LiveRefresh({ topics, seconds = 1 / 3 }: Props) {
  return <Follow topics={topics.join(",")} seconds={seconds} since={renderedAt()} />;
}
