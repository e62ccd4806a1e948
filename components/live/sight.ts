import { useSyncExternalStore } from "react";

/** Whether somebody may see this page: its tab is in front and its window is not minimised. */
export function isSeen(): boolean {
  return document.visibilityState !== "hidden";
}

/** Calls `listener` when that changes, until the returned function is called. */
export function onSight(listener: () => void): () => void {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
}

/** The same as a state of a component. */
export function useSeen(): boolean {
  return useSyncExternalStore(onSight, isSeen, () => true);
}
