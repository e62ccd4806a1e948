import { eq } from "drizzle-orm";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { teams } from "#server/db/schema/index.ts";

/** The outgoing network policy that a launcher enforces for a team; closed for a team that does not exist. */
export async function egressPolicyOf(db: Database | Transaction, teamId: string): Promise<EgressPolicy> {
  const [row] = await db.select({ policy: teams.egressPolicy }).from(teams).where(eq(teams.id, teamId));
  return row?.policy ?? { mode: "none", allow: [] };
}
