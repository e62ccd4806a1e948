/** Many rows in one statement that does not change with their number, so that the server keeps it prepared. */
import { getTableColumns, type InferInsertModel, type SQL, sql, type Table } from "drizzle-orm";

/** Inserts rows, at least one, that all set the same columns; one that has its default in all of them is left to the table. */
export function insertion<T extends Table>(table: T, rows: readonly InferInsertModel<T>[]): SQL {
  const [first = {}] = rows;
  const field = (row: InferInsertModel<T>, key: string) => (row as Record<string, unknown>)[key] ?? null;
  const columns = Object.entries(getTableColumns(table)).filter(
    ([key, column]) => key in first && rows.some((row) => field(row, key) !== (column.default ?? null)),
  );
  const records = rows.map((row) => Object.fromEntries(columns.map(([key, column]) => [column.name, field(row, key)])));
  const names = sql.raw(columns.map(([, column]) => `"${column.name}"`).join(", "));
  return sql`insert into ${table} (${names}) select ${names} from json_populate_recordset(null::${table}, ${JSON.stringify(records)}::json)`;
}
