import { SluiceError } from "#server/errors.ts";

/** Refuses an address to come back to that is none: next-auth would fail on it with a fault of its own. */
export function refuseMalformedCallbackUrls(given: readonly (string | null | undefined)[]): void {
  for (const url of given) {
    if (url == null || url === "" || url.startsWith("/") || URL.canParse(url)) continue;
    throw new SluiceError("invalid", "callbackUrl: This is not an address. Start again from the sign-in page.");
  }
}
