"use client";

import { useSyncExternalStore } from "react";
import { api } from "#components/api.ts";
import { type Theme, themeCookie } from "#server/contracts/theme.ts";

/** What was chosen since the page was loaded; the menu and the settings show the same. */
let chosen: Theme | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The look of the pages in this browser, and how to choose another; `initial`: what the cookie said to the server. */
export function useTheme(initial: Theme): [Theme, (next: Theme) => void] {
  const theme = useSyncExternalStore(
    subscribe,
    () => chosen ?? initial,
    () => initial,
  );
  return [theme, choose];
}

function choose(next: Theme): void {
  chosen = next;
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser yet
  document.cookie = `${themeCookie}=${next}; path=/; max-age=31536000; samesite=lax`;
  for (const listener of listeners) listener();
  // Any request notes the cookie with the session, from which open JupyterLabs read it.
  void api("GET", "/me");
}
