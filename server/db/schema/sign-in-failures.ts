import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { instant } from "./columns.ts";

/**
 * Wrong passwords of late, counted for an e-mail and for an e-mail with an address, and links for a new password that
 * opened nothing, for an address; what is guessed too often waits.
 */
export const signInFailures = pgTable("sign_in_failures", {
  /** SHA-256 of what is counted: this table tells nobody's e-mail. */
  key: text("key").primaryKey(),
  count: integer("count").notNull(),
  /** When the counting began; after the window it begins anew. */
  since: instant("since").notNull(),
});
