import { QueueTable } from "#components/lease/queue-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { AddGpuServer } from "#components/pool/add-gpu-server.tsx";
import { PoolFigures } from "#components/pool/pool-figures.tsx";
import { ServerCard } from "#components/pool/server-card.tsx";
import { StopLeases } from "#components/stop/stop-leases.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { overview } from "#server/services/gpu-server/overview.ts";
import { list as listTeams } from "#server/services/team/list.ts";
import { list as listUsers } from "#server/services/user/list.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Pool" };

/** As much as the browser needs of them. */
const named = ({ id, name }: { id: string; name: string }) => ({ id, name });

/** The pool now: four figures, every device with its leases, and the queue. */
export default async function PoolPage() {
  const ctx = await pageContext();
  const [pool, { teams }, { users }] = await load(() => Promise.all([overview(ctx), listTeams(ctx), listUsers(ctx)]));
  const servers = pool.servers.filter((server) => server.state !== "removed");
  return (
    <>
      <LiveRefresh topics="lease,pool" />
      <PageHeader
        title="Pool"
        actions={
          <>
            <StopLeases teams={teams.map(named)} people={users.filter(({ disabled }) => !disabled).map(named)} />
            <AddGpuServer />
          </>
        }
      />
      <PoolFigures pool={pool} />
      <div className="mb-8">
        {servers.length === 0 ? (
          <EmptyState title="No GPU server yet" action={<AddGpuServer />}>
            A GPU server runs gpud and lends its devices to the pool. <em>Add GPU server</em> shows the one line to run
            on it.
          </EmptyState>
        ) : (
          servers.map((server) => (
            <ServerCard
              key={server.id}
              server={server}
              devices={pool.devices.filter((device) => device.serverId === server.id)}
            />
          ))
        )}
      </div>
      <Section title="Queue">
        {pool.queue.length === 0 ? (
          <EmptyState title="Nobody waits">
            Requests that will fit when something ends stand here with their reason.
          </EmptyState>
        ) : (
          <QueueTable rows={pool.queue} />
        )}
      </Section>
    </>
  );
}
