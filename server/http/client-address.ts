/**
 * Where a request came from. Behind a reverse proxy the last hop is the one that it saw; what a client claims comes
 * before it. Without a proxy a client may claim any address, so nothing may be granted for one. null: nobody said.
 */
export function clientAddress(headers: Pick<Headers, "get">): string | null {
  return headers.get("x-forwarded-for")?.split(",").at(-1)?.trim().slice(0, 64) || null;
}
