/**
 * Open pages of different people, as their browsers keep them up to date: what a grant to one of all people costs the
 * portal with all of them open, and how soon whom it concerns has seen it. What a page follows, and at which pace, is
 * read from the page itself.
 */
import { readFile } from "node:fs/promises";
import { Agent, type ClientRequest, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { isNull, sql } from "drizzle-orm";
import { createPace } from "#components/live/pace.ts";
import { encodeSession, SESSION_COOKIE } from "#server/auth/session-cookie.ts";
import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { users } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { createSession } from "#server/services/session/create.ts";
import { type Ask, asker } from "./pages.ts";

const TABS = 100;
const GRANTS = 60;
const BETWEEN_MS = 500;
/** What the frame follows for its own question, in seconds (`components/shell/live-glance.tsx`). */
const FRAME = { topics: ["mine", "notice"], seconds: 1 / 3 };

type Options = { url: string; db: Database; pid: number };
type Follow = { topics: string[]; seconds: number };

/** `grant_renders`: pages rendered for one grant; `grant_cpu_ms`: the portal's processor time for it. */
export async function measureTabs({ url, db, pid }: Options): Promise<Record<string, number>> {
  const people = await peopleWithPages(db);
  const tabs: Tab[] = [];
  try {
    for (const person of people) tabs.push(await Tab.open(url, person));
    const grants = await held(db);
    // What has changed since the pages were read, and code that is loaded for the first time.
    for (const grant of grants.slice(0, 4)) await tell(db, grant);
    await sleep(5000);
    for (const tab of tabs) tab.renders = 0;
    const before = await processorMs(pid);
    const seen: number[] = [];
    for (let n = 0; n < GRANTS; n++) {
      // Each fifth to somebody who has a page open, like a fifth of all people.
      const grant = n % 5 === 0 ? ofSomebodyHere(grants, people, n / 5) : grants[n % grants.length];
      if (grant === undefined) throw new Error("Nobody holds a GPU.");
      const asked = tabs.find((tab) => tab.userId === grant.userId)?.nextGlance();
      const began = performance.now();
      await tell(db, grant);
      if (asked !== undefined) seen.push(await asked.then(() => performance.now() - began));
      await sleep(Math.max(0, BETWEEN_MS - (performance.now() - began)));
    }
    await sleep(1000);
    const failed = tabs.find((tab) => tab.failed !== undefined)?.failed;
    if (failed !== undefined) throw new Error(failed);
    const renders = tabs.reduce((sum, tab) => sum + tab.renders, 0);
    return {
      grant_renders: renders / GRANTS,
      grant_cpu_ms: ((await processorMs(pid)) - before) / GRANTS,
      grant_seen_ms: Math.max(...seen),
    };
  } finally {
    for (const tab of tabs) tab.close();
  }
}

type Grant = { leaseId: string; requestId: string; gpuId: string; userId: string };

async function held(db: Database): Promise<Grant[]> {
  const rows = await db.execute<Grant>(sql`
    select id as "leaseId", request_id as "requestId", gpu_id as "gpuId", user_id as "userId"
    from leases where state <> 'ended' order by md5(id)`);
  return [...rows];
}

function ofSomebodyHere(grants: readonly Grant[], people: readonly { userId: string }[], n: number): Grant | undefined {
  const here = grants.filter(({ userId }) => people.some((person) => person.userId === userId));
  return here[n % here.length];
}

/** As a round of grants tells it. */
async function tell(db: Database, { leaseId, requestId, gpuId }: Grant): Promise<void> {
  await db.transaction(async (tx) => {
    await notify(tx, "lease", requestId);
    await notify(tx, "lease", leaseId);
    await notify(tx, "pool", gpuId);
  });
}

type PersonWithPage = { userId: string; cookie: string; path: string };

/** Members, with the pages that people leave open: mostly their workspaces, sometimes their GPUs or their teams. */
async function peopleWithPages(db: Database): Promise<PersonWithPage[]> {
  const rows = await db.execute<{ userId: string; workspaceId: string }>(sql`
    select w.owner_id as "userId", min(w.id) as "workspaceId"
    from workspaces w join memberships m on m.user_id = w.owner_id
    where w.desired = 'running' group by w.owner_id having bool_and(m.role = 'member') order by md5(w.owner_id) limit ${TABS}`);
  return await Promise.all(
    [...rows].map(async ({ userId, workspaceId }, n) => {
      const cookie = await cookieOf(db, userId);
      const kind = n % 10;
      const path = kind < 5 ? "/workspaces" : kind < 8 ? `/workspaces/${workspaceId}` : kind < 9 ? "/gpus" : "/teams";
      return { userId, cookie, path };
    }),
  );
}

/** Cookies of so many people. */
export async function cookiesOf(db: Database, count: number): Promise<string[]> {
  const people = await db.select({ userId: users.id }).from(users).where(isNull(users.disabledAt)).limit(count);
  return await Promise.all(people.map(async ({ userId }) => await cookieOf(db, userId)));
}

async function cookieOf(db: Database, userId: string): Promise<string> {
  const session = await createSession(systemContext(db), { userId, by: "password" });
  return `${SESSION_COOKIE}=${await encodeSession({ ...session, userId, now: new Date() })}`;
}

/** A page in a browser, as the portal sees it. */
class Tab {
  readonly userId: string;
  renders = 0;
  failed: string | undefined;
  readonly #follows: { topics: readonly string[]; wake: () => void }[];
  readonly #stream: ClientRequest;
  #glanced: () => void = () => undefined;

  static async open(url: string, { userId, cookie, path }: PersonWithPage): Promise<Tab> {
    const ask = asker(url, cookie);
    const since = Date.now();
    const { status, body } = await ask(path);
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    const tab = new Tab(userId, { url, cookie, path, ask, since, follows: followsOf(body) });
    return tab;
  }

  private constructor(
    userId: string,
    on: { url: string; cookie: string; path: string; ask: Ask; since: number; follows: Follow[] },
  ) {
    this.userId = userId;
    const render = asker(on.url, on.cookie, { rsc: "1" });
    const page = createPace(() => {
      this.renders += 1;
      // As the router asks, whose question tells caches apart by the page that it comes from.
      render(`${on.path}?_rsc=`).then(
        ({ status }) => {
          if (status !== 200) this.failed = `${on.path} answered ${status}`;
        },
        () => undefined,
      );
    });
    const frame = createPace(() => {
      on.ask("/api/v1/me/glance").then(
        () => this.#glanced(),
        () => undefined,
      );
    });
    this.#follows = [
      ...on.follows.map(({ topics, seconds }) => ({ topics, wake: () => page(seconds) })),
      { topics: FRAME.topics, wake: () => frame(FRAME.seconds) },
    ];
    const topics = [...new Set(this.#follows.flatMap((follow) => follow.topics))].sort().join(",");
    this.#stream = request(`${on.url}/api/v1/live?topics=${topics}&since=${on.since}`, {
      agent: new Agent(),
      headers: { cookie: on.cookie },
    });
    this.#stream.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        const whole = text.slice(0, text.lastIndexOf("\n\n") + 2);
        text = text.slice(whole.length);
        for (const [, topic] of whole.matchAll(/^data: \{"topic":"([a-z-]+)"/gm)) this.#hear(topic ?? "");
      });
      response.on("error", () => undefined);
    });
    this.#stream.on("error", () => undefined);
    this.#stream.end();
  }

  #hear(topic: string): void {
    for (const { topics, wake } of this.#follows) if (topics.includes(topic)) wake();
  }

  /** Settles when the frame has read again. */
  async nextGlance(): Promise<void> {
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#glanced = resolve;
      }),
      sleep(10_000).then(() => {
        throw new Error("Whom a grant concerns was not told of it.");
      }),
    ]);
  }

  close(): void {
    this.#stream.destroy();
  }
}

/** What the components that follow (`components/live/follow.tsx`) were given, from the page's data. */
function followsOf(body: Buffer): Follow[] {
  const html = (body[0] === 0x1f ? gunzipSync(body) : body).toString().replaceAll("\\", "");
  const follows = [...html.matchAll(/"topics":"([a-z,-]+)","seconds":([\d.]+)/g)].map(([, topics = "", seconds]) => ({
    topics: topics.split(","),
    seconds: Number(seconds),
  }));
  if (follows.length === 0) throw new Error("The page follows nothing.");
  return follows;
}

/** Processor time that a process has used, all of its threads. */
async function processorMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // In hundredths of a second, whatever the kernel's own clock.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
