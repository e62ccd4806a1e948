/** Once in each server process of the portal, before it answers. */

export async function register(): Promise<void> {
  // Pages are served by Node alone; what is bundled for another runtime has no sockets.
  if (process.env.NEXT_RUNTIME === "nodejs") (await import("#server/http/watch-requests.ts")).watchRequests();
}
