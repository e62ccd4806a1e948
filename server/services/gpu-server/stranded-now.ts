import { eq } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { strandedMilli } from "#server/scheduler/stranded.ts";
import { knownGpuTypes, loadWorld } from "#server/services/lease/world.ts";

/** What is stranded now (`strandedMilli`), thousandths, of each GPU type there is; 0 where nobody waits. */
export async function strandedNow(db: Database | Transaction, now: Date): Promise<ReadonlyMap<string, number>> {
  const [types, waited] = await Promise.all([
    knownGpuTypes(db),
    db.selectDistinct({ gpuType: leaseRequests.gpuType }).from(leaseRequests).where(eq(leaseRequests.state, "queued")),
  ]);
  const stranded = new Map(types.map((gpuType) => [gpuType, 0]));
  // A world of a large pool takes a while to load: only of what somebody waits for.
  for (const { gpuType } of waited) stranded.set(gpuType, strandedMilli(await loadWorld(db, gpuType, now)));
  return stranded;
}
