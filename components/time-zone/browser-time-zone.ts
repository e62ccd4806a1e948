import { type TimeZoneChoice, timeZoneCookie, writeTimeZone } from "./time-zone.ts";

export function browserTimeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Keeps the choice for a year in this browser; the pages have it from the next answer on. */
export function keepTimeZone(choice: TimeZoneChoice): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser yet
  document.cookie = `${timeZoneCookie}=${writeTimeZone(choice)}; path=/; max-age=31536000; samesite=lax`;
}
