/** What a person sees of the GPUs: their own, their teams' queue, and what their teams may borrow and get now. */
import { z } from "zod";
import { leaseListItem, queueEntry } from "./gpu-server.ts";
import { leaseReason } from "./lease.ts";

/** A request that waits, with the whole reason. */
export const waitingRequest = queueEntry.omit({ reason: true, rule: true }).extend({
  teamId: z.string(),
  userId: z.string(),
  workspaceId: z.string(),
  reason: leaseReason,
});
export type WaitingRequest = z.infer<typeof waitingRequest>;

/** One GPU type as one team sees it now. */
export const teamQuotaNow = z.strictObject({
  teamId: z.string(),
  teamName: z.string(),
  gpuType: z.string(),
  guaranteedMilli: z.int(),
  /** What is guaranteed now: less while servers are away, more with a calendar or a reservation. */
  guaranteedNowMilli: z.int(),
  limitMilli: z.int(),
  /** All that the team holds, and the part of it above what is guaranteed now. */
  usedMilli: z.int(),
  borrowedMilli: z.int(),
  /** The largest piece that would be granted at once. */
  atOnceMilli: z.int(),
  /** What all devices of the type have together, and what nobody holds of it. */
  capacityMilli: z.int(),
  freeMilli: z.int(),
  /** GPU memory of the largest of them, on which a memory amount is the smallest part; 0: there is none. */
  deviceMemoryBytes: z.int(),
  /** Requests of the type that wait, of every team. */
  queued: z.int(),
  /** What a GPU of this type costs an hour, millionths of the currency's unit; null: it has no price by the hour. */
  hourMicro: z.int().nullable(),
});
export type TeamQuotaNow = z.infer<typeof teamQuotaNow>;

export const leaseBoard = z.strictObject({
  /** The person's own leases that have not ended. */
  leases: z.array(leaseListItem),
  /** What waits of the person's own and of their teams'; an admin sees all. */
  requests: z.array(waitingRequest),
  quotas: z.array(teamQuotaNow),
  /** Of prices: ISO 4217. */
  currency: z.string(),
});
export type LeaseBoard = z.infer<typeof leaseBoard>;

/** `DELETE /api/v1/lease-requests/{id}`: leave the queue from a page. */
export const leaveQueueInput = z.strictObject({ id: z.string().max(64) });
export type LeaveQueueInput = z.infer<typeof leaveQueueInput>;
export const leaveQueueAnswer = z.strictObject({ requestId: z.string(), state: z.literal("cancelled") });
export type LeaveQueueAnswer = z.infer<typeof leaveQueueAnswer>;
