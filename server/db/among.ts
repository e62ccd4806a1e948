/** Whether a column's value is one of many, in a text that does not change with their number. */
import { type Column, type Placeholder, type SQL, sql } from "drizzle-orm";

/**
 * `values` is a JSON array of texts, or stands for one. The list is an array of its own, so that the server goes to the
 * column's index for each, whatever it believes of the table's size.
 */
export function among(column: Column | SQL, values: string | Placeholder): SQL {
  return sql`${column} = any(array(select json_array_elements_text(${values}::json)))`;
}
