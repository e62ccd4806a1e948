import { followEventsInput, workspaceEventList } from "#server/contracts/workspace.ts";
import { followEvents } from "#server/http/follow-events.ts";
import { route } from "#server/http/route.ts";
import { events } from "#server/services/workspace/events.ts";

export const GET = route(
  {
    method: "GET",
    path: "/workspaces/{id}/events",
    summary: "Steps and log lines of a workspace; with ?follow a stream",
    action: "workspace.read",
    input: followEventsInput,
    output: workspaceEventList,
    stream: "follow",
  },
  async (ctx, { follow, ...input }) => {
    // A stream resumes where the browser's connection was lost.
    const lastSeen = Number(ctx.request.headers.get("last-event-id"));
    const after = Number.isSafeInteger(lastSeen) && lastSeen > (input.after ?? 0) ? lastSeen : input.after;
    const from = { ...input, after };
    return follow === undefined ? await events(ctx, from) : await followEvents(ctx, from, ctx.signal);
  },
);
