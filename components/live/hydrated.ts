"use client";

import { useSyncExternalStore } from "react";

const never = () => () => undefined;

/** Whether the page answers to clicks yet: false while the server's HTML stands alone. */
export function useHydrated(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  );
}
