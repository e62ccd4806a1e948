import { BehindChart } from "#components/chart/behind.tsx";
import { type Series, TimeChart } from "#components/chart/time-chart.tsx";
import { formatCount, formatDuration, formatGpuHours, formatMark, formatShare } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Card, Figure, Figures, PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { TimeTable } from "#components/utilisation/time-table.tsx";
import { UsageFilter } from "#components/utilisation/usage-filter.tsx";
import { LAST_HOURS, type UsageQuestion } from "#components/utilisation/usage-question.ts";
import { UsageSpans } from "#components/utilisation/usage-spans.tsx";
import { UtilisationTable } from "#components/utilisation/utilisation-table.tsx";
import { userId, workspaceId } from "#server/contracts/common.ts";
import type { TimeParts, Utilisation } from "#server/contracts/utilisation.ts";
import { LONGEST_DAYS, read } from "#server/services/utilisation/read.ts";
import { load, pageContext } from "../../page-context.ts";
import { askedDays, lastHours } from "../asked-days.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "Usage" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const HOUR = 3600_000;
/** What became of the time, and what of the free was stranded. */
type Parts = TimeParts & { stranded: number };
const SERIES: (Series & { key: keyof Parts })[] = [
  { key: "used", label: "Used", look: "used" },
  { key: "heldIdle", label: "Held idle", look: "held" },
  { key: "free", label: "Free", look: "free" },
  { key: "stranded", label: "Stranded", look: "stranded" },
  { key: "draining", label: "Draining", look: "warn" },
  { key: "lost", label: "Lost", look: "bad" },
];

/** What became of the pool's time, and who had it. */
export default async function UsagePage({ searchParams }: Props) {
  const ctx = await pageContext();
  const { isAdmin, teams } = await load(() => ledTeams(ctx));
  const asked = await searchParams;
  const bounds = { now: ctx.now(), usually: 7, most: LONGEST_DAYS };
  const one = (name: string) => (typeof asked[name] === "string" ? asked[name] : "");
  const last = LAST_HOURS.find((hours) => hours === one("last")) ?? "";
  const days =
    last === "" ? askedDays({ from: one("from"), to: one("to") }, bounds) : lastHours(Number(last), ctx.now());
  const by = (["team", "person", "workspace", "type"] as const).find((each) => each === one("by")) ?? "team";
  const team = teams.find((each) => each.id === one("team")) ?? (isAdmin ? undefined : teams[0]);
  const asks: UsageQuestion = {
    ...{ from: days.from, to: days.to, last },
    type: one("type"),
    team: team?.id ?? "",
    by,
    order: one("order") === "idle" ? "idle" : "held",
    person: userId.safeParse(one("person")).data ?? "",
    workspace: workspaceId.safeParse(one("workspace")).data ?? "",
  };
  const question = {
    ...days.span,
    ...(one("type") ? { gpuType: one("type") } : {}),
    ...(team ? { teamId: team.id } : {}),
    ...(asks.person ? { userId: asks.person } : {}),
    ...(asks.workspace ? { workspaceId: asks.workspace } : {}),
    by,
    order: asks.order,
  };
  const search = one("search").slice(0, 100);
  const after = one("after").slice(0, 100);
  const usage =
    days.wrong !== undefined
      ? undefined
      : await load(() => read(ctx, { ...question, search, ...(after && { after }) }));
  const place = {
    path: "/usage",
    question: asks,
    search,
    label: `Search by ${by}`,
  };
  // What is free or away belongs to nobody.
  const whole = team === undefined && asks.person === "" && asks.workspace === "";
  const series = whole ? SERIES : SERIES.slice(0, 2);
  const total = usage && partsOf({ ...usage.total, stranded: usage.stranded });
  const file = (format: string) => `/api/v1/utilisation?${new URLSearchParams({ ...question, format }).toString()}`;
  return (
    <>
      <LiveRefresh topics={["usage", "lease", "pool"]} seconds={30} />
      <PageHeader title="Usage" detail="What became of the pool's time, and who had it" />
      <UsageFilter
        key={JSON.stringify(asks)}
        question={asks}
        names={{ person: usage?.person ?? null, workspace: usage?.workspace ?? null }}
        types={usage?.gpuTypes ?? []}
        teams={teams}
        anyTeam={isAdmin}
      />
      <UsageSpans question={asks} now={ctx.now()} />
      {usage === undefined || total === undefined ? (
        <EmptyState title={days.wrong?.title ?? ""}>{days.wrong?.hint}</EmptyState>
      ) : usage.bins.length === 0 ? (
        <EmptyState title="Nothing was in the pool in this time">
          Choose another time or type; a GPU server that joins is counted from its first minute.
        </EmptyState>
      ) : (
        <>
          <UsageFigures usage={usage} whole={whole} />
          <Section
            title="Over time"
            detail={`GPUs on average, ${spanWords(usage, last)}${whole ? ". Stranded: free while somebody waited, and fitting none of those who did" : ""}`}
          >
            <Card className="px-3.5 py-3">
              <TimeChart
                label={`GPUs over time: ${series.map(({ key, label }) => `${label} ${formatGpuHours(total[key])} GPU-hours`).join(", ")}`}
                series={series}
                from={usage.from}
                to={usage.to}
                zone="UTC"
                bins={usage.bins.map((bin) => ({ from: bin.from, to: bin.to, values: perHour(bin) }))}
                format={(value) => `${formatGpuHours(value)} GPUs`}
                mark={(value, step) => `${formatMark(value, step)} GPUs`}
              />
              <BehindChart csv={file("csv-time")}>
                <TimeTable bins={usage.bins} whole={whole} />
              </BehindChart>
            </Card>
          </Section>
          <Section title="Who had it" actions={<DownloadCsv href={file("csv")} />}>
            {(usage.rowCount > usage.rows.length || search !== "") && <SearchList {...place} />}
            <UtilisationTable rows={usage.rows} question={asks} />
            <Paging
              {...place}
              {...{ shown: usage.rows.length, total: usage.rowCount, next: usage.next, first: after === "" }}
            />
          </Section>
        </>
      )}
    </>
  );
}

function UsageFigures({ usage, whole }: { usage: Utilisation; whole: boolean }) {
  const { used, heldIdle, free, draining, lost } = usage.total;
  const held = used + heldIdle;
  const all = held + free + draining + lost;
  const { promised, delivered, borrowed } = usage;
  return (
    <Figures>
      <Figure
        label="Allocated"
        value={whole ? formatShare(held, all) : formatGpuHours(held)}
        unit={whole ? undefined : "GPU-h"}
        detail={
          whole
            ? `${formatGpuHours(held)} of ${formatGpuHours(all)} GPU-h${usage.stranded > 0 ? `; ${formatGpuHours(usage.stranded)} free fitted none who waited` : ""}`
            : `${formatGpuHours(borrowed)} of it borrowed`
        }
      />
      <Figure
        label="Used of allocated"
        value={formatShare(used, held)}
        detail={`${formatGpuHours(heldIdle)} GPU-h held idle`}
      />
      <Figure
        label="95 of 100 waited at most"
        value={usage.waitP95 === null ? "–" : formatDuration(usage.waitP95 * 1000)}
        detail={
          usage.waitMedian === null
            ? "nothing was granted"
            : `half ${formatDuration(usage.waitMedian * 1000)}, of ${formatCount(usage.grants)} grants`
        }
      />
      <Figure
        label="Delivered of promised"
        value={formatShare(delivered, promised)}
        detail={promised > 0 ? deliveredDetail(promised, usage.fairness) : "nobody shared a busy GPU"}
      />
    </Figures>
  );
}

function deliveredDetail(promised: number, fairness: number | null): string {
  const of = `of ${formatGpuHours(promised)} GPU-h while others waited`;
  return fairness === null ? of : `${of}; fairness between teams ${fairness.toFixed(2)} of 1 (Jain)`;
}

/** `2026-11-19 to 2026-11-25`; of the last hours to the minute. */
function spanWords({ from, to }: Utilisation, last: string): string {
  const minute = (iso: string) => iso.slice(0, 16).replace("T", " ");
  return last === "" ? `${from.slice(0, 10)} to ${to.slice(0, 10)}` : `${minute(from)} to ${minute(to)} UTC`;
}

/** What the chart stacks: of what was free, what fitted none of those who waited stands apart. */
const partsOf = (parts: Parts): Parts => ({ ...parts, free: parts.free - parts.stranded });

/** GPU-hours of a stretch as GPUs on average. */
function perHour(bin: Utilisation["bins"][number]): Record<string, number> {
  const hours = Math.max(1e-9, (Date.parse(bin.to) - Date.parse(bin.from)) / HOUR);
  const parts = partsOf(bin);
  return Object.fromEntries(SERIES.map(({ key }) => [key, parts[key] / hours]));
}
