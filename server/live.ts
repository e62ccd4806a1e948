/** Live data: writers notify inside their transaction, readers hear of it when the transaction is committed. */
import { type SQL, sql as statement } from "drizzle-orm";
import { toldTopic } from "#server/contracts/live.ts";
import { type Database, database, type Sql, type Transaction } from "#server/db/client.ts";

/**
 * What browsers may follow, and what processes tell each other alone. `session`: a browser session or an access token
 * ended; the gateway and the portal close what it opened. `ending`: leases on this GPU server are to end; the broker that holds its control connection
 * tells gpud. `followed`: somebody follows the lines of this workspace; the broker reads what it prints.
 */
export const liveTopics = [...toldTopic.options, "session", "ending", "followed"] as const;
export type LiveTopic = (typeof liveTopics)[number];

/** `id` is what changed; null after the connection was lost, when anything may have changed. */
export type LiveEvent = { topic: LiveTopic; id: string | null };

const CHANNEL = "sluice";

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
  /** Settles when the connection listens: what is written after that is heard. */
  ready: () => Promise<void>;
  close: () => Promise<void>;
};

/** One LISTEN connection for all subscribers of a process; it comes back by itself when the server was away. */
export function createLive(sql: Sql): Live {
  const subscribers = new Set<{ topics: ReadonlySet<LiveTopic>; onEvent: (event: LiveEvent) => void }>();
  let listening: Promise<{ unlisten: () => Promise<void> }> | undefined;
  let listenedBefore = false;
  /** When each topic was last heard of; before the first LISTEN nobody knows. */
  const heardAt = new Map<LiveTopic, number>();

  const deliver = (event: LiveEvent) => {
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
          for (const topic of liveTopics) {
            if (listenedBefore) deliver({ topic, id: null });
            else heardAt.set(topic, Date.now());
          }
          listenedBefore = true;
        },
      )
      .catch((error: unknown) => {
        listening = undefined;
        throw error;
      });
    return listening;
  };

  const keepTrying = () => {
    start().catch(() => {
      if (subscribers.size > 0) setTimeout(keepTrying, 500).unref();
    });
  };

  return {
    subscribe(topics, onEvent, since = Number.POSITIVE_INFINITY) {
      const subscriber = { topics: new Set(topics), onEvent };
      subscribers.add(subscriber);
      keepTrying();
      for (const topic of topics) {
        if (since <= (heardAt.get(topic) ?? Date.now())) onEvent({ topic, id: null });
      }
      return () => subscribers.delete(subscriber);
    },
    async ready() {
      await start();
    },
    async close() {
      subscribers.clear();
      const current = listening;
      listening = undefined;
      // A connection that is gone listens to nothing.
      await (await current?.catch(() => undefined))?.unlisten().catch(() => undefined);
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
