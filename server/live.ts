/** Live data: writers notify inside their transaction, readers hear of it when the transaction is committed. */
import { type SQL, sql as statement } from "drizzle-orm";
import { toldTopic } from "#server/contracts/live.ts";
import { type Database, database, type Sql, type Transaction } from "#server/db/client.ts";
import { SluiceError } from "#server/errors.ts";
import { within } from "#server/within.ts";

/**
 * What browsers may follow, and what processes tell each other alone. `session`: a browser session or an access token
 * ended; the gateway and the portal close what it opened. `ending`: leases on this GPU server are to end; the broker that holds its control connection
 * tells gpud. `followed`: somebody follows the lines of this workspace; the broker reads what it prints.
 */
export const liveTopics = [...toldTopic.options, "session", "ending", "followed"] as const;
export type LiveTopic = (typeof liveTopics)[number];

/** `id` is what changed; null when the connection has begun to listen: anything may have changed until then. */
export type LiveEvent = { topic: LiveTopic; id: string | null };

const CHANNEL = "sluice";

/** How long `ready` waits for the first LISTEN. */
const READY_MS = 5_000;
/** How long `close` waits for a LISTEN under way. */
const CLOSE_MS = 1_000;

/** Tells every process that something changed. Inside a transaction it is heard at commit, and not at all on rollback. */
export async function notify(db: Database | Transaction, topic: LiveTopic, id: string): Promise<void> {
  await db.execute(statement`select pg_notify(${CHANNEL}, ${JSON.stringify({ topic, id })})`);
}

export type Change = { topic: LiveTopic; id: string };

/** The same for many changes, in one statement. */
export async function notifyAll(db: Database | Transaction, changes: readonly Change[]): Promise<void> {
  if (changes.length > 0) await db.execute(notification(changes));
}

/** A column of a query that tells, for each row, of a change to what `id` names. */
export function notified(topic: LiveTopic, id: SQL): SQL {
  return statement`pg_notify(${CHANNEL}, json_build_object('topic', ${topic}::text, 'id', ${id})::text)`;
}

/** The statement itself, for one that does more. */
export function notification(changes: readonly Change[]): SQL {
  const payloads = JSON.stringify([...new Set(changes.map(({ topic, id }) => JSON.stringify({ topic, id })))]);
  return statement`select pg_notify(${CHANNEL}, payload) from json_array_elements_text(${payloads}::json) payload`;
}

export type Live = {
  /**
   * Calls `onEvent` for each change of these topics until the returned function is called. With `since` (milliseconds
   * since 1970) at once for each topic that may have changed since then: for who has read before it follows.
   */
  subscribe: (topics: readonly LiveTopic[], onEvent: (event: LiveEvent) => void, since?: number) => () => void;
  /** Settles with the first LISTEN: each later change reaches every subscriber. Throws `unavailable` without one. */
  ready: () => Promise<void>;
  close: () => Promise<void>;
};

/**
 * One LISTEN connection for all subscribers of a process. postgres.js connects again whenever the connection closes or
 * cannot be made. After each LISTEN, the first included, every subscriber gets `id: null` for its topics.
 */
export function createLive(sql: Sql): Live {
  const subscribers = new Set<{ topics: ReadonlySet<LiveTopic>; onEvent: (event: LiveEvent) => void }>();
  let onFirstListen: () => void = () => undefined;
  const firstListen = new Promise<void>((resolve) => {
    onFirstListen = resolve;
  });
  let listening: Promise<{ unlisten: () => Promise<void> } | undefined> | undefined;
  let isClosed = false;
  /** Time of the last event of each topic. Empty before the first LISTEN. */
  const heardAt = new Map<LiveTopic, number>();

  const deliver = (event: LiveEvent) => {
    if (isClosed) return;
    heardAt.set(event.topic, Date.now());
    for (const subscriber of subscribers) if (subscriber.topics.has(event.topic)) subscriber.onEvent(event);
  };

  const start = () => {
    listening ??= sql
      .listen(
        CHANNEL,
        (payload) => {
          const event = parseEvent(payload);
          if (event !== undefined) deliver(event);
        },
        () => {
          for (const topic of liveTopics) deliver({ topic, id: null });
          onFirstListen();
        },
      )
      // A second call would be a second listener: every change would be delivered twice.
      .catch(() => undefined);
  };

  return {
    subscribe(topics, onEvent, since = Number.POSITIVE_INFINITY) {
      const subscriber = { topics: new Set(topics), onEvent };
      subscribers.add(subscriber);
      start();
      for (const topic of topics) {
        if (since <= (heardAt.get(topic) ?? Date.now())) onEvent({ topic, id: null });
      }
      return () => subscribers.delete(subscriber);
    },
    async ready() {
      start();
      await within(READY_MS, firstListen, () => {
        throw new SluiceError("unavailable", "The database cannot be reached just now. Try again in a few seconds.");
      });
    },
    async close() {
      isClosed = true;
      subscribers.clear();
      // A connection that is gone listens to nothing, and one that cannot be made is not waited for.
      const listened = listening === undefined ? undefined : await within(CLOSE_MS, listening, () => undefined);
      await listened?.unlisten().catch(() => undefined);
    },
  };
}

function parseEvent(payload: string): LiveEvent | undefined {
  try {
    const value: unknown = JSON.parse(payload);
    if (typeof value !== "object" || value === null || !("topic" in value) || !("id" in value)) return undefined;
    const topic = liveTopics.find((known) => known === value.topic);
    return topic === undefined || typeof value.id !== "string" ? undefined : { topic, id: value.id };
  } catch {
    return undefined;
  }
}

const shared = globalThis as typeof globalThis & { __sluiceLive?: { sql: Sql; live: Live } };

/** The process's own live connection, over its own database pool. */
export function live(): Live {
  const { sql } = database();
  if (shared.__sluiceLive?.sql !== sql) shared.__sluiceLive = { sql, live: createLive(sql) };
  return shared.__sluiceLive.live;
}

/** [`Live.subscribe`] over the process's own connection. */
export function subscribe(
  topics: readonly LiveTopic[],
  onEvent: (event: LiveEvent) => void,
  since?: number,
): () => void {
  return live().subscribe(topics, onEvent, since);
}
