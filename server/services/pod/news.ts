import { and, eq, isNotNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { leaseRequests, workspaces } from "#server/db/schema/index.ts";
import { formatMilli } from "#server/scheduler/amount.ts";
import { answerFor } from "#server/services/lease/answer.ts";

/** What is to be told on a pod about its request for a GPU. */
export type PodNews = {
  podUid: string;
  /** Names what is told: the same request in the same state is told once. */
  about: string;
  reason: "GpuQueued" | "GpuBorrowed" | "GpuNotBorrowed";
  message: string;
};

/** How the request of a pod stands, in words; undefined for a request that is no pod's, and when there is nothing to say. */
export async function news(ctx: Context, { requestId }: { requestId: string }): Promise<PodNews | undefined> {
  authorize(ctx.principal, "pod.news");
  const [found] = await ctx.db
    .select({ row: leaseRequests, podUid: workspaces.podUid })
    .from(leaseRequests)
    .innerJoin(workspaces, eq(workspaces.id, leaseRequests.workspaceId))
    .where(and(eq(leaseRequests.id, requestId), isNotNull(workspaces.podUid)));
  if (!found?.podUid) return undefined;
  const { row, podUid } = found;
  const answer = await answerFor(ctx.db, row, ctx.now()).catch(() => undefined);
  const tell = (reason: PodNews["reason"], message: string) => ({
    podUid,
    about: `${row.id} ${row.state}`,
    reason,
    message,
  });
  switch (answer?.state) {
    case "queued": {
      const { position, of, milli, gpuType, reason } = answer;
      const place = `Waits for ${formatMilli(milli)} ${gpuType}, ${position} of ${of} in the queue, until ${row.waitUntil.toISOString()}`;
      return tell("GpuQueued", `${place}: ${reason.message}`);
    }
    case "granted": {
      const { lease } = answer;
      const milli = formatMilli(lease.devices?.reduce((sum, device) => sum + device.milli, 0) ?? lease.milli);
      return tell("GpuBorrowed", `Borrowed ${milli} GPU: ${lease.deviceName} on ${lease.serverName}.`);
    }
    case "refused":
      return tell("GpuNotBorrowed", answer.reason.message);
    case "expired": {
      // Why it waited is no answer without this: it reads like a wait that goes on.
      const why = answer.reason === undefined ? "." : `: ${answer.reason.message}`;
      return tell("GpuNotBorrowed", `No GPU came free in the time that the pod waits${why}`);
    }
    default:
      return undefined;
  }
}
