/**
 * The egress proxies of all local workspaces: one socket in each workspace's folder, with the policy of its team. They
 * run in a separate process, so that downloads neither slow the broker nor end with the broker.
 */
import { watch } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { eq, ne } from "drizzle-orm";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import type { Database } from "#server/db/client.ts";
import { gpuServers, teams, workspaces } from "#server/db/schema/index.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import type { Logger } from "#server/log.ts";
import { MOST_REFUSALS, type RefusedConnection, recordRefusals } from "#server/services/workspace/record-refusals.ts";
import { AddressRules } from "./addresses.ts";
import { EGRESS_SOCKET, egressFolder } from "./egress-folder.ts";
import { createEgressProxy, type EgressProxy } from "./egress-proxy.ts";
import { packageIndexes } from "./package-indexes.ts";
import { upstreamOf } from "./upstream.ts";

/** Interval of the scan for new and removed folders, which covers events that `fs.watch` missed. */
const LOOK_MS = 1_000;
/** Maximum age of a policy. */
const POLICY_MS = 2_000;
const RECORD_MS = 2_000;

export type EgressService = {
  /** Scans for new and removed workspaces now, in addition to the regular scan. */
  look: () => Promise<void>;
  close: () => Promise<void>;
};

export type EgressServiceOptions = {
  stateDir: string;
  log: Logger;
  /** Names the host's own proxy, if it has one. */
  environment: NodeJS.ProcessEnv;
  rules?: AddressRules;
};

/** Starts the service; settles when all present workspaces have their sockets. */
export async function startEgress(db: Database, options: EgressServiceOptions): Promise<EgressService> {
  const { stateDir, log, rules = new AddressRules() } = options;
  const folder = egressFolder(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const open = new Map<string, EgressProxy>();
  const refused = new Map<string, RefusedConnection[]>();
  const upstream = upstreamOf(options.environment);
  const indexes = packageIndexes(options.environment);
  const addresses = kept(async () => await addressesOfGpuServers(db));

  const begin = async (id: string) => {
    const policy = kept(async () => await policyOf(db, id));
    let known: ReadonlySet<string> = new Set();
    const proxy = createEgressProxy({
      rules,
      upstream,
      indexes,
      gpuServers: () => known,
      policy: async () => {
        known = await addresses();
        return await policy();
      },
      onRefused: (refusal) => note(refused, id, refusal),
    });
    open.set(id, proxy);
    try {
      await listenInFolder(proxy.server, path.join(folder, id), EGRESS_SOCKET, 0o666);
    } catch (error) {
      // The folder was removed meanwhile. The next scan tries a folder that is still present.
      log.debug({ err: error, workspaceId: id }, "egress socket is not ready yet");
      open.delete(id);
      proxy.close();
    }
  };

  const round = async () => {
    const ids = (await readdir(folder)).filter((name) => /^ws-[a-z2-7]{26}$/.test(name));
    const present = new Set(ids);
    for (const [id, proxy] of open) {
      if (present.has(id)) continue;
      open.delete(id);
      proxy.close();
    }
    for (const id of ids) if (!open.has(id)) await begin(id);
  };
  let looking: Promise<void> | undefined;
  const look = async () => {
    looking ??= round()
      .catch((error: unknown) => log.warn({ err: error }, "scan for workspaces failed"))
      .finally(() => {
        looking = undefined;
      });
    await looking;
  };
  const record = async () => {
    for (const [id, refusals] of refused) {
      refused.delete(id);
      // The rows of a workspace that was deleted meanwhile are gone.
      await recordRefusals(db, id, refusals).catch((error: unknown) =>
        log.debug({ err: error, workspaceId: id }, "refused connections were not recorded"),
      );
    }
  };
  const watcher = watch(folder, () => void look());
  const timers = [setInterval(() => void look(), LOOK_MS), setInterval(() => void record(), RECORD_MS)];
  await look();
  return {
    look,
    close: async () => {
      watcher.close();
      for (const timer of timers) clearInterval(timer);
      await looking;
      for (const proxy of open.values()) proxy.close();
      await record();
    },
  };
}

/** Adds up refusals by destination, for at most MOST_REFUSALS destinations. */
function note(refused: Map<string, RefusedConnection[]>, id: string, refusal: Omit<RefusedConnection, "count">): void {
  const list = refused.get(id) ?? [];
  refused.set(id, list);
  const same = list.find(({ host, port }) => host === refusal.host && port === refusal.port);
  if (same !== undefined) same.count = (same.count ?? 1) + 1;
  else if (list.length < MOST_REFUSALS) list.push({ ...refusal, count: 1 });
}

async function policyOf(db: Database, workspaceId: string): Promise<EgressPolicy> {
  const [row] = await db
    .select({ policy: teams.egressPolicy })
    .from(workspaces)
    .innerJoin(teams, eq(teams.id, workspaces.teamId))
    .where(eq(workspaces.id, workspaceId));
  return row?.policy ?? { mode: "none", allow: [] };
}

/** `host:port` of each GPU server in the pool. */
async function addressesOfGpuServers(db: Database): Promise<ReadonlySet<string>> {
  const rows = await db
    .select({ address: gpuServers.dataAddress })
    .from(gpuServers)
    .where(ne(gpuServers.state, "removed"));
  return new Set(rows.map(({ address }) => (address ?? "").replace(/^\w+:\/\//, "").toLowerCase()));
}

/** A value that is read again after two seconds. When a read fails, the last value stays. */
function kept<T>(read: () => Promise<T>): () => Promise<T> {
  let last: { value: T; at: number } | undefined;
  let reading: Promise<T> | undefined;
  return async () => {
    if (last !== undefined && Date.now() - last.at < POLICY_MS) return last.value;
    reading ??= read()
      .then((value) => {
        last = { value, at: Date.now() };
        return value;
      })
      .catch((error: unknown) => {
        if (last === undefined) throw error;
        last = { ...last, at: Date.now() };
        return last.value;
      })
      .finally(() => {
        reading = undefined;
      });
    return await reading;
  };
}
