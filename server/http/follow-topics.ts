import { isAllowed } from "#server/auth/authorize.ts";
import type { Principal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import type { FollowInput } from "#server/contracts/live.ts";
import { SluiceError } from "#server/errors.ts";
import type { StreamEvent } from "#server/http/event-stream.ts";
import { renewed } from "#server/http/renewed.ts";
import { liveEvents, type Signal } from "#server/http/signals.ts";
import { hasAdmin } from "#server/services/setup/complete.ts";

/** How soon a stream notices that its session was ended or a role taken away. */
const RENEW_MS = 30_000;

/** How somebody is told of an event; `undefined`: not at all. */
type Sight = (event: Signal) => Signal | undefined;

/**
 * Names of what changed; the page reads what it may see by the ordinary way. Only admins, who see everything, are told
 * the ids. A topic that the person may not follow is left out, so that one of them does not cost a page the others.
 */
export async function followTopics(
  ctx: Context & { request: Request },
  input: FollowInput,
  signal: AbortSignal,
): Promise<AsyncGenerator<StreamEvent>> {
  return follow(ctx, input, signal, await sightOf(ctx, input.topics));
}

/** Until there is an admin, anybody who reaches the portal watches the steps of start-up; nothing else. */
async function sightOf(ctx: Context, topics: FollowInput["topics"]): Promise<Sight> {
  if (topics.every((topic) => topic === "setup") && !(await hasAdmin(ctx.db))) return (event) => event;
  authorize(ctx.principal, "live.subscribe");
  const followed = new Set<string>(topics.filter((topic) => mayFollow(ctx.principal, topic)));
  if (followed.size === 0) {
    throw new SluiceError("forbidden", "Admins and team leads follow the audit, admins alone the health.");
  }
  const seesAll = isAllowed(ctx.principal, "pool.read");
  const own = ownId(ctx.principal);
  return (event) => {
    if (!followed.has(event.topic)) return undefined;
    // What others are told is nobody else's business, an admin's neither.
    if (event.topic === "notice" && event.id !== null && event.id !== own) return undefined;
    return seesAll || event.topic === "setup" ? event : { topic: event.topic, id: null };
  };
}

function ownId(principal: Principal): string | undefined {
  return principal.kind === "user" ? principal.userId : undefined;
}

function mayFollow(principal: Principal, topic: Signal["topic"]): boolean {
  if (topic === "health") return isAllowed(principal, "health.read");
  return topic !== "audit" || readsAudit(principal);
}

function readsAudit(principal: Principal): boolean {
  const teamIds = principal.kind === "user" ? Object.keys(principal.teams) : [];
  return [undefined, ...teamIds].some((teamId) => isAllowed(principal, "audit.list", { teamId }));
}

async function* follow(
  ctx: Context & { request: Request },
  { topics, since }: FollowInput,
  signal: AbortSignal,
  first: Sight,
): AsyncGenerator<StreamEvent> {
  let sight = first;
  let renewedAt = performance.now();
  const options = { everyMs: RENEW_MS, as: (heard: Signal) => sight(heard), since, userId: ownId(ctx.principal) };
  for await (const event of liveEvents(topics, signal, options)) {
    if (performance.now() - renewedAt >= RENEW_MS) {
      try {
        sight = await sightOf(await renewed(ctx), topics);
      } catch (error) {
        if (error instanceof SluiceError) return;
        // Without a database nobody can be checked; the stream goes on and tries again.
      }
      renewedAt = performance.now();
    }
    if (event !== undefined) yield { data: event };
  }
}
