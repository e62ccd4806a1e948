import { cx, formatCount } from "#components/format.ts";
import { QueueTable } from "#components/lease/queue-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { gpuType as gpuTypeOf } from "#server/contracts/common.ts";
import { queuePlace } from "#server/contracts/gpu-server.ts";
import { queue } from "#server/services/gpu-server/queue.ts";
import { load, pageContext } from "../../page-context.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "Queue" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

/** Who waits, where in the queue, and why: all types or one, found by a word. A lead reads those of the led teams. */
export default async function QueuePage({ searchParams }: Props) {
  const ctx = await pageContext();
  const { isAdmin } = await load(() => ledTeams(ctx));
  const asked = await searchParams;
  const search = typeof asked.search === "string" ? asked.search.slice(0, 100) : "";
  const gpuType = gpuTypeOf.safeParse(asked.type).data;
  const after = queuePlace.safeParse(asked.after).data;
  const whose = gpuType === undefined ? {} : { gpuType };
  const waiting = await load(() => queue(ctx, { ...whose, search, ...(after && { after }) }));
  const question: Record<string, string> = gpuType === undefined ? {} : { type: gpuType };
  const place = { path: "/queue", question, search, label: "Search people, teams, workspaces" };
  const types = [undefined, ...waiting.queued.map((each) => each.gpuType)];
  const href = (type: string | undefined) =>
    type === undefined ? "/queue" : `/queue?${new URLSearchParams({ type })}`;
  return (
    <>
      <LiveRefresh topics={["lease", "pool"]} seconds={5} />
      <PageHeader
        title="Queue"
        detail={isAdmin ? "Who waits for GPUs, and why" : "Of your teams; their places are among all who wait"}
      />
      {(waiting.queued.length > 1 || gpuType !== undefined) && (
        <nav aria-label="GPU type" className="mb-4 flex flex-wrap gap-1 text-sm">
          {types.map((type) => (
            <Link
              key={type ?? ""}
              href={href(type)}
              aria-current={type === gpuType ? "true" : undefined}
              className={cx("rounded-md px-2 py-1", type === gpuType ? "bg-accent-soft font-medium" : "hover:bg-hover")}
            >
              {type ?? "all types"}{" "}
              <span className="figures text-ink-2">{formatCount(countOf(waiting.queued, type))}</span>
            </Link>
          ))}
        </nav>
      )}
      <Section
        title={gpuType === undefined ? "Waiting" : `Waiting for ${gpuType}`}
        actions={
          waiting.rowCount > 0 && (
            <DownloadCsv
              href={`/api/v1/pool/queue?${new URLSearchParams({ ...(gpuType && { gpuType }), search, format: "csv" })}`}
            />
          )
        }
      >
        {(waiting.rowCount > waiting.rows.length || search !== "" || after !== undefined) && <SearchList {...place} />}
        {waiting.rows.length > 0 ? (
          <QueueTable rows={waiting.rows.map((request) => ({ ...request, canLeave: true }))} />
        ) : search === "" ? (
          <EmptyState title={`${isAdmin ? "Nobody" : "Nobody of your teams"} waits${gpuType ? ` for ${gpuType}` : ""}`}>
            Waiting requests appear here, with the reason.
          </EmptyState>
        ) : (
          <p className="text-ink-2">Nothing matches “{search}”.</p>
        )}
        <Paging
          {...place}
          {...{ shown: waiting.rows.length, total: waiting.rowCount, next: waiting.next, first: after === undefined }}
        />
      </Section>
    </>
  );
}

/** How many wait for a type, or for any. */
function countOf(queued: readonly { gpuType: string; count: number }[], type: string | undefined): number {
  return queued.reduce((sum, each) => (type === undefined || each.gpuType === type ? sum + each.count : sum), 0);
}
