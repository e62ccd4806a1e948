import { cx, formatCount } from "#components/format.ts";
import { QueueTable } from "#components/lease/queue-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { AddGpuServer } from "#components/pool/add-gpu-server.tsx";
import { type MapShows, mapRecord } from "#components/pool/map-record.ts";
import { MostIdle } from "#components/pool/most-idle.tsx";
import { PoolFigures } from "#components/pool/pool-figures.tsx";
import { PoolTypes } from "#components/pool/pool-types.tsx";
import { PoolUse } from "#components/pool/pool-use.tsx";
import { ServerCard } from "#components/pool/server-card.tsx";
import { MapLegend, ServerMap } from "#components/pool/server-map.tsx";
import { type TeamKey, teamKey } from "#components/pool/team-key.ts";
import { TeamLegend } from "#components/pool/team-legend.tsx";
import { StopLeases } from "#components/stop/stop-leases.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { gpuServerId } from "#server/contracts/common.ts";
import type { PoolMap } from "#server/contracts/gpu-server.ts";
import { readDevices } from "#server/services/gpu-server/devices.ts";
import { map } from "#server/services/gpu-server/map.ts";
import { poolSight } from "#server/services/gpu-server/pool-sight.ts";
import { queue } from "#server/services/gpu-server/queue.ts";
import { MOST_IDLE_DAYS, mostIdle, mostIdleFrom } from "#server/services/utilisation/most-idle.ts";
import { recentWaitP95 } from "#server/services/utilisation/recent-wait.ts";
import { load, loadFrom, pageContext } from "../../page-context.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "Pool" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

/** A pool of so many devices stands there whole; a larger one is a map, of which servers are opened. */
const WHOLE_UP_TO = 32;
/** So many of the queue stand here; all of it has a page of its own. */
const FIRST_WAITING = 20;
const SHOWS: Record<MapShows, string> = { leased: "leased", compute: "computed in the last minute" };

/** The pool now: four figures, every device with its leases by team, the queue, and who let GPUs lie idle. A lead reads of other teams how much alone. */
export default async function PoolPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const asked = await searchParams;
  const one = (name: string) => (typeof asked[name] === "string" ? asked[name] : "");
  const search = one("search").slice(0, 100);
  const after = gpuServerId.safeParse(asked.after).data;
  const { isAdmin, teams: led } = await load(() => ledTeams(ctx));
  const whose = isAdmin ? undefined : led.map(({ id }) => id);
  const [pool, waiting, idle, waitP95] = await loadFrom(after, (from) =>
    Promise.all([
      map(ctx, { search, after: from }),
      queue(ctx, { limit: FIRST_WAITING }),
      mostIdle(ctx, 5, whose),
      recentWaitP95(ctx, whose),
    ]),
  );
  const key = teamKey(pool.teams);
  const count = pool.totals.reduce((sum, total) => sum + total.devices, 0);
  const whole = count <= WHOLE_UP_TO;
  const opened = new Set(one("open").split(",").slice(0, WHOLE_UP_TO));
  const open = pool.servers.filter((server) => whole || opened.has(server.id));
  const devices = await load(() =>
    readDevices(
      ctx,
      poolSight(ctx),
      open.map((server) => server.id),
    ),
  );
  const cards = open.map(({ devices: _, ...server }) => (
    <ServerCard
      key={server.id}
      server={server}
      devices={devices.filter((device) => device.serverId === server.id)}
      teamKey={key}
      mayChange={isAdmin}
    />
  ));
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
  const week = { from: dayOf(mostIdleFrom(ctx.now())), to: dayOf(ctx.now().getTime()) };
  return (
    <>
      <LiveRefresh topics={["lease", "pool"]} seconds={2} />
      <PageHeader
        title="Pool"
        detail={isAdmin ? undefined : "For other teams you see amounts, not people"}
        actions={
          isAdmin && (
            <>
              <StopLeases />
              <AddGpuServer />
            </>
          )
        }
      />
      <PoolFigures totals={pool.totals} waitP95={waitP95} />
      {whole ? (
        <div className="mb-8">
          <TeamLegend teams={pool.teams} teamKey={key} />
          {pool.servers.length === 0 && search === "" ? (
            <EmptyState title="No GPU server yet" action={isAdmin && <AddGpuServer />}>
              A GPU server runs gpud and lends its devices to the pool. <em>Add GPU server</em> shows the one line to
              run on it.
            </EmptyState>
          ) : (
            cards
          )}
        </div>
      ) : (
        <>
          <PoolTypes totals={pool.totals} />
          <PoolServers
            {...{
              pool,
              search,
              teamKey: key,
              first: after === undefined,
              shows: asked.show === "compute" ? "compute" : "leased",
            }}
            details={Object.fromEntries(open.map((server, at) => [server.id, cards[at]]))}
          />
        </>
      )}
      {/* Only admins may read free capacity. */}
      {isAdmin && <PoolUse />}
      <Section
        title="Queue"
        detail={isAdmin ? undefined : "Of your teams; their places are among all who wait"}
        actions={
          waiting.rowCount > 0 && (
            <Link href="/queue" className="text-sm text-accent underline underline-offset-4">
              All {formatCount(waiting.rowCount)}, in Queue
            </Link>
          )
        }
      >
        {waiting.rows.length === 0 ? (
          <EmptyState title={isAdmin ? "Nobody waits" : "Nobody of your teams waits"}>
            Waiting requests appear here, with the reason.
          </EmptyState>
        ) : (
          <QueueTable rows={waiting.rows.map((request) => ({ ...request, canLeave: true }))} />
        )}
      </Section>
      {idle.length > 0 && (
        <Section
          title="Held idle, by person"
          detail={`GPU-hours of the last ${MOST_IDLE_DAYS} days (UTC) in which a GPU was held and did nothing`}
          actions={
            <Link
              href={`/usage?${new URLSearchParams({ ...week, by: "person", order: "idle" }).toString()}`}
              className="text-sm text-accent underline underline-offset-4"
            >
              {isAdmin ? "Everybody, in Usage" : "More, in Usage"}
            </Link>
          }
        >
          <MostIdle rows={idle} {...week} />
        </Section>
      )}
    </>
  );
}

type PoolServersProps = {
  pool: PoolMap;
  teamKey: TeamKey;
  search: string;
  first: boolean;
  shows: MapShows;
  details: Record<string, React.ReactNode>;
};

/** Many servers: found by a word, opened by a press. */
function PoolServers({ pool, teamKey, search, first, shows, details }: PoolServersProps) {
  const question: Record<string, string> = shows === "leased" ? {} : { show: shows };
  const place = { path: "/pool", question, search, label: "Search servers, devices, people" };
  const withSearch: Record<string, string> = search === "" ? {} : { search };
  return (
    <Section
      title="GPU servers"
      detail="Each square is a GPU. The bar shows which teams are using it. Choose a server to see its leases"
    >
      <SearchList {...place} />
      <div className="mb-2 flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <nav aria-label="What the squares show" className="flex gap-1 text-sm">
          {(Object.keys(SHOWS) as MapShows[]).map((each) => (
            <Link
              key={each}
              href={`/pool?${new URLSearchParams({ ...withSearch, show: each }).toString()}`}
              scroll={false}
              aria-current={each === shows ? "true" : undefined}
              className={cx("rounded-md px-2 py-1", each === shows ? "bg-accent-soft font-medium" : "hover:bg-hover")}
            >
              {SHOWS[each]}
            </Link>
          ))}
        </nav>
        <MapLegend shows={SHOWS[shows]} />
      </div>
      <TeamLegend teams={pool.teams} teamKey={teamKey} />
      {pool.servers.length === 0 ? (
        <p className="text-ink-2">Nothing matches “{search}”.</p>
      ) : (
        <ServerMap
          servers={pool.servers.map((server) => mapRecord(server, shows))}
          teamKey={teamKey}
          details={details}
          base="/pool"
          question={{ ...question, ...withSearch }}
        />
      )}
      <Paging {...place} {...{ shown: pool.servers.length, total: pool.serverCount, next: pool.next, first }} />
    </Section>
  );
}
