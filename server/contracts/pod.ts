/** Pods of a cluster that borrow a GPU by a label: how one becomes known to the broker. */
import { z } from "zod";

/** `POST /v1/pods`: a pod shows its account's token, made by the cluster for our audience, and gets a credential. */
export const joinPodInput = z.strictObject({
  token: z.string().min(1).max(16_384),
  /** For which of its namespace's teams it borrows; nothing means the first. */
  team: z.string().max(63).optional(),
  /** The type that `sluice gpu` shows, and that a request without one asks for. */
  gpuType: z.string().min(1).max(32),
});
export type JoinPodInput = z.infer<typeof joinPodInput>;

export const joinPodAnswer = z.strictObject({
  workspaceId: z.string(),
  /** A bearer token for the lease API; good while the pod lives, and until the pod asks for another. */
  credential: z.string(),
  /** `namespace/pod`, as people read it. */
  name: z.string(),
});
export type JoinPodAnswer = z.infer<typeof joinPodAnswer>;
