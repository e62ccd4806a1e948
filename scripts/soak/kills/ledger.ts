/** What the tables of an installation say of its leases, asked over a connection of the soak's own. */
import { setTimeout as sleep } from "node:timers/promises";
import { type OpenDatabase, openDatabase, type Sql } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import type { Hold } from "./overcommit.ts";

const SAMPLE_MS = 200;

export type Counts = { grants: number; waited: number; waiting: number; held: number };
export type Open = { leases: number; requests: number; intervals: number };

export class Ledger {
  readonly #database: OpenDatabase;
  readonly #sql: Sql;

  private constructor(database: OpenDatabase) {
    this.#database = database;
    this.#sql = database.sql;
  }

  /** The installation's own server runs; this connects to it. */
  static async open(stateDir: string): Promise<Ledger> {
    const { url } = await startEmbeddedPostgres(stateDir);
    return new Ledger(openDatabase(url, { max: 2, applicationName: "sluice soak" }));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  /** Looks five times a second, until the signal, whether leases hold more of a GPU than there is. */
  async watch(signal: AbortSignal, onFinding: (finding: string) => void): Promise<void> {
    const found = new Set<string>();
    while (!signal.aborted) {
      // While the database is away, nothing can be granted.
      const rows = await this.#overcommitted().catch(() => []);
      for (const { name, milli, memory } of rows) {
        if (!found.has(name)) onFinding(`the leases of ${name} hold ${milli} thousandths and ${memory} bytes together`);
        found.add(name);
      }
      await sleep(SAMPLE_MS);
    }
  }

  async #overcommitted() {
    return await this.#sql<{ name: string; milli: string; memory: string }[]>`
      select g.name || ' of ' || s.name as name, sum(l.milli) as milli, sum(l.memory_bytes) as memory
      from leases l join gpus g on g.id = l.gpu_id join gpu_servers s on s.id = l.server_id
      where l.state <> 'ended' group by g.id, g.name, g.memory_bytes, s.name
      having sum(l.milli) > 1000 or sum(l.memory_bytes) > g.memory_bytes`;
  }

  /** GPUs that can be borrowed now. */
  async gpus(): Promise<number> {
    const [row] = await this.#sql<{ count: number }[]>`
      select count(*)::int as count from gpus g join gpu_servers s on s.id = g.server_id
      where g.state = 'active' and s.state = 'online'`;
    return row?.count ?? 0;
  }

  async counts(): Promise<Counts> {
    const [row] = await this.#sql<Counts[]>`
      select (select count(*)::int from lease_requests where state = 'granted') as grants,
        (select count(*)::int from lease_requests where state = 'granted' and decided_at > created_at + interval '50 ms')
          as waited,
        (select count(*)::int from lease_requests where state = 'queued') as waiting,
        (select count(*)::int from leases where state <> 'ended') as held`;
    if (row === undefined) throw new Error("no counts");
    return row;
  }

  /** What has not ended. */
  async open(): Promise<Open> {
    const [row] = await this.#sql<Open[]>`
      select (select count(*)::int from leases where state <> 'ended') as leases,
        (select count(*)::int from lease_requests where state = 'queued') as requests,
        (select count(*)::int from lease_intervals where ended_at is null) as intervals`;
    if (row === undefined) throw new Error("no counts");
    return row;
  }

  /** Leases without exactly one interval of the ledger. */
  async unaccounted(): Promise<number> {
    const [row] = await this.#sql<{ count: number }[]>`
      select count(*)::int as count from leases l
      where (select count(*) from lease_intervals i where i.lease_id = l.id) <> 1`;
    return row?.count ?? 0;
  }

  /** All intervals so far; those of leases that are held now have no end yet. */
  async holds(): Promise<Hold[]> {
    // As numbers: Drizzle has taken the reading and writing of times from this connection.
    const rows = await this.#sql<{ lease: string; gpu: string; milli: number; from: number; to: number | null }[]>`
      select lease_id as lease, gpu_id as gpu, milli, extract(epoch from started_at)::float8 as "from",
        extract(epoch from ended_at)::float8 as "to"
      from lease_intervals`;
    return rows.map(({ lease, gpu, milli, from, to }) => {
      return { what: lease, gpuId: gpu, milli, from, to: to ?? Number.POSITIVE_INFINITY };
    });
  }

  /** GPU and amount of each lease. */
  async amounts(): Promise<Map<string, { gpuId: string; milli: number }>> {
    const rows = await this.#sql<{ id: string; gpu: string; milli: number }[]>`
      select id, gpu_id as gpu, milli from leases`;
    return new Map(rows.map(({ id, gpu, milli }) => [id, { gpuId: gpu, milli }]));
  }
}
