/**
 * The egress proxies of all local workspaces: one socket in each workspace's folder, with the policy of its team. They
 * run in a separate process, so that downloads neither slow the broker nor end with the broker.
 */
import { eq, ne } from "drizzle-orm";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import type { Database } from "#server/db/client.ts";
import { gpuServers, teams, workspaces } from "#server/db/schema/index.ts";
import type { Logger } from "#server/log.ts";
import {
  type CountedRefusal,
  MOST_REFUSALS,
  type RefusedConnection,
  recordRefusals,
} from "#server/services/workspace/record-refusals.ts";
import { serveWorkspaces } from "#server/workspace-sockets.ts";
import { AddressRules } from "./addresses.ts";
import { createEgressProxy, type EgressProxy } from "./egress-proxy.ts";
import { packageIndexes } from "./package-indexes.ts";
import { upstreamOf } from "./upstream.ts";

/** Name of the socket in a workspace's folder. */
export const EGRESS_SOCKET = "egress.sock";
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
  const refused = new Map<string, CountedRefusal[]>();
  const upstream = upstreamOf(options.environment);
  const indexes = packageIndexes(options.environment);
  const addresses = kept(async () => await addressesOfGpuServers(db));

  const serve = (id: string): EgressProxy => {
    const policy = kept(async () => await policyOf(db, id));
    let known: ReadonlySet<string> = new Set();
    return createEgressProxy({
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
  const timer = setInterval(() => void record(), RECORD_MS);
  const serving = await serveWorkspaces({ stateDir, name: EGRESS_SOCKET, log, serve });
  return {
    look: serving.look,
    close: async () => {
      clearInterval(timer);
      await serving.close();
      await record();
    },
  };
}

/** Adds up refusals by destination, for at most MOST_REFUSALS destinations. */
function note(refused: Map<string, CountedRefusal[]>, id: string, refusal: RefusedConnection): void {
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
    if (last !== undefined && performance.now() - last.at < POLICY_MS) return last.value;
    reading ??= read()
      .then((value) => {
        last = { value, at: performance.now() };
        return value;
      })
      .catch((error: unknown) => {
        if (last === undefined) throw error;
        last = { ...last, at: performance.now() };
        return last.value;
      })
      .finally(() => {
        reading = undefined;
      });
    return await reading;
  };
}
