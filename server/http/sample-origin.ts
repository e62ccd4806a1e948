/**
 * Where the sample user's window is, beside a portal on localhost: cookies belong to a hostname, and on one of its own
 * both windows stay signed in. Undefined for a portal elsewhere, which has no second name.
 */
export function sampleOrigin(portal: string): string | undefined {
  const url = new URL(portal);
  if (url.hostname !== "localhost") return undefined;
  url.hostname = "sample.localhost";
  return url.origin;
}
