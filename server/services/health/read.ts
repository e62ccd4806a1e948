import { ne, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type Component, type Health, type ProcessHealth, processHealth } from "#server/contracts/health.ts";
import { gpuServers, quotas } from "#server/db/schema/index.ts";
import { egressHealthSocket } from "#server/egress/health.ts";
import { env } from "#server/env.ts";
import { boundedFetch } from "#server/http/bounded-answer.ts";
import { baseUrlOf, fetchOf, unixEndpoint } from "#server/jupyter/endpoint.ts";
import { formatQuota } from "#server/scheduler/amount.ts";
import { loadPromises } from "#server/services/lease/world.ts";
import { VERSION } from "#server/version.ts";
import { leftBehind } from "./left-behind.ts";

type LauncherHealth = NonNullable<ProcessHealth["launchers"]>[number];

/** Where a service's port is another program's, that program answers. */
const ANSWER = { maxBytes: 256 * 1024, timeoutMs: 2_000 };
const order: Component["state"][] = ["down", "warning", "ok"];

/** Asks every part whether it works; what is wrong stands first, each with what to do. */
export async function read(ctx: Context): Promise<Health> {
  authorize(ctx.principal, "health.read");
  const at = ctx.now().toISOString();
  const { SLUICE_BROKER_URL, SLUICE_GATEWAY_INTERNAL_URL, SLUICE_GATEWAY_PORT } = env();
  const parts = await Promise.all([
    database(ctx, at),
    service("broker", SLUICE_BROKER_URL, at, "Nobody gets a GPU and no workspace starts meanwhile; what runs goes on."),
    service(
      "gateway",
      SLUICE_GATEWAY_INTERNAL_URL ?? `http://127.0.0.1:${SLUICE_GATEWAY_PORT}`,
      at,
      "No workspace can be opened meanwhile; notebooks go on.",
    ),
    egress(at),
    servers(ctx),
    guarantees(ctx),
    leftBehind(ctx.db),
  ]);
  const portal: Component = {
    ...{ kind: "portal", name: "Portal", state: "ok", detail: "answers, as you see", seenAt: at, next: null },
    version: `${VERSION}, Node ${process.versions.node}`,
  };
  const components = [portal, ...parts.flat()];
  components.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return { at, components };
}

async function database(ctx: Context, at: string): Promise<Component> {
  const began = performance.now();
  const [row] = await ctx.db.execute<{ version: string }>(sql`select current_setting('server_version') as version`);
  const ms = Math.round(performance.now() - began);
  const slow = ms > 250;
  return {
    ...{ kind: "database", name: "PostgreSQL", state: slow ? "warning" : "ok", seenAt: at },
    detail: `answered in ${ms} ms`,
    version: row?.version ?? null,
    next: slow ? "Look at its load and its disk: every decision waits for it." : null,
  };
}

type OwnProcess = "broker" | "gateway" | "egress";
const names: Record<OwnProcess, string> = { broker: "Broker", gateway: "Gateway", egress: "Egress" };

/** Only local workspaces use the egress process for outgoing connections. */
async function egress(at: string): Promise<Component[]> {
  const { SLUICE_LAUNCHERS, SLUICE_STATE_DIR } = env();
  if (!SLUICE_LAUNCHERS.includes("local")) return [];
  const meanwhile = "Local workspaces have no outgoing connections for now. Notebooks keep running.";
  return await service("egress", unixEndpoint(egressHealthSocket(SLUICE_STATE_DIR)), at, meanwhile);
}

/** One of our own processes, by its `/healthz`. */
async function service(kind: OwnProcess, endpoint: string, at: string, meanwhile: string): Promise<Component[]> {
  const name = names[kind];
  const ask = kind === "egress" ? fetchOf(endpoint, ANSWER) : boundedFetch(ANSWER);
  const { status, body } = await ask(`${baseUrlOf(endpoint)}/healthz`).then(
    async (answer) => ({ status: answer.status, body: (await answer.json().catch(() => undefined)) as unknown }),
    () => ({ status: undefined, body: undefined }),
  );
  if (status === 200) {
    // One of another version, while the installation is updated, may tell less.
    const { version = null, launchers = [] } = processHealth.safeParse(body).data ?? {};
    const own: Component = {
      kind,
      name,
      state: "ok",
      detail: `answers at ${endpoint}`,
      version,
      seenAt: at,
      next: null,
    };
    return [own, ...launchers.map((launcher) => launcherHealth(launcher, version, at))];
  }
  const next = `${meanwhile} ${startsAgain(kind)}`;
  const detail = status === undefined ? `does not answer at ${endpoint}` : `answers ${status} at ${endpoint}`;
  return [{ kind, name, state: "down", detail, version: null, seenAt: null, next }];
}

/** What starts our processes where workspaces are the cluster's pods alone is the cluster; elsewhere `npm start`. */
function startsAgain(kind: OwnProcess): string {
  return env().SLUICE_LAUNCHERS.includes("local")
    ? `npm start starts it again by itself; if not, its last lines are in logs/${kind}.log of the state directory.`
    : `Kubernetes starts it again by itself; if not, kubectl logs -l app.kubernetes.io/component=${kind} shows its last lines.`;
}

function launcherHealth(launcher: LauncherHealth, version: string | null, at: string): Component {
  const { name, isolated, reason, refusal, limits } = launcher;
  const limited = limits === undefined ? "" : `. ${limits.sentence}`;
  const about = { kind: "launcher", name: `Launcher ${name}`, version, seenAt: at } as const;
  if (refusal !== undefined) return { ...about, state: "down", detail: refusal.happened, next: refusal.next };
  return {
    ...about,
    ...(isolated
      ? {
          state: "ok",
          detail: `keeps workspaces apart from one another and from the installation${limited}`,
          next: null,
        }
      : {
          state: "warning",
          detail: `${reason ?? "cannot keep workspaces apart from one another"}${limited}`,
          next: "Only the first admin may launch workspaces meanwhile. Give the broker's host what is missing, then restart it.",
        }),
  };
}

async function servers(ctx: Context): Promise<Component[]> {
  const rows = await ctx.db.select().from(gpuServers).where(ne(gpuServers.state, "removed")).orderBy(gpuServers.name);
  return rows.map((row) => ({
    ...{ kind: "gpu-server", name: row.name, version: row.version, seenAt: row.lastSeenAt?.toISOString() ?? null },
    ...stateOf(row.state, row.name),
  }));
}

/** GPU types of which less is there than teams are guaranteed; so many teams are named. */
const NAMED = 3;

async function guarantees(ctx: Context): Promise<Component[]> {
  const types = await ctx.db.selectDistinct({ gpuType: quotas.gpuType }).from(quotas).orderBy(quotas.gpuType);
  const parts = await Promise.all(
    types.map(async ({ gpuType }): Promise<Component[]> => {
      const promises = await loadPromises(ctx.db, gpuType, ctx.now());
      const scaled = [...promises.quotas.values()].flatMap(({ teamId, teamName, guaranteedMilli }) => {
        const now = promises.guarantees.get(teamId) ?? 0;
        return now < guaranteedMilli ? [`${teamName} ${formatQuota(now)} of ${formatQuota(guaranteedMilli)}`] : [];
      });
      if (scaled.length === 0) return [];
      const more = scaled.length > NAMED ? ` and ${scaled.length - NAMED} more teams` : "";
      return [
        {
          ...{ kind: "guarantees", name: `Guarantees of ${gpuType}`, state: "warning", version: null, seenAt: null },
          detail: `less is there than teams are guaranteed, so each has a part of it: ${scaled.slice(0, NAMED).join(", ")}${more}`,
          next: "They are whole again when the servers that are away or being drained are back, or when quotas promise less.",
        },
      ];
    }),
  );
  return parts.flat();
}

type ServerState = (typeof gpuServers.$inferSelect)["state"];

function stateOf(state: ServerState, name: string): Pick<Component, "state" | "detail" | "next"> {
  switch (state) {
    case "online":
      return { state: "ok", detail: "lends its devices", next: null };
    case "draining":
      return {
        state: "warning",
        detail: "takes nothing new",
        next: "Resume it on the pool page when it may lend again.",
      };
    case "joining":
      return {
        state: "warning",
        detail: "has not connected yet",
        next: "Run the line from “Add GPU server” on it, or look whether gpud reaches the broker.",
      };
    default:
      return {
        state: "down",
        detail: "does not answer; its leases end after a minute",
        next: `Look whether gpud runs on ${name} and reaches the broker; it comes back by itself. Gone for good: remove it on the pool page.`,
      };
  }
}
