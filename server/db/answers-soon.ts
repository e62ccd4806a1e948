import { sql } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { SluiceError } from "#server/errors.ts";
import { within } from "#server/within.ts";

/** Shorter than the watchdog's timeout, so that a database that hangs does not end a healthy process. */
const HEALTH_MS = 5_000;

/** Settles when the database answers; throws `unavailable` when there is no answer in time. */
export async function answersSoon(db: Pick<Database, "execute">, ms = HEALTH_MS): Promise<void> {
  await within(ms, Promise.resolve(db.execute(sql`select 1`)), () => {
    throw new SluiceError("unavailable", "The database does not answer. Try again in a moment.");
  });
}
