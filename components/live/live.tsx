import { Follow } from "./follow.tsx";
import { renderedAt } from "./rendered-at.ts";

/** Renders the page again on the server when one of the topics (comma-separated) has changed since it was read. */
export function LiveRefresh({ topics }: { topics: string }) {
  return <Follow topics={topics} since={renderedAt()} />;
}
