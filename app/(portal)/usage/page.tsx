import { BehindChart } from "#components/chart/behind.tsx";
import { type Series, TimeChart } from "#components/chart/time-chart.tsx";
import { formatCount, formatDuration, formatGpuHours, formatMark, formatShare } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Card, Figure, Figures, PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { EFFECTIVE, effectiveNotes, effectiveWords, unknownHours } from "#components/utilisation/effective.ts";
import { TimeTable } from "#components/utilisation/time-table.tsx";
import { UsageFilter } from "#components/utilisation/usage-filter.tsx";
import { LAST_HOURS, type UsageQuestion } from "#components/utilisation/usage-question.ts";
import { UsageSpans } from "#components/utilisation/usage-spans.tsx";
import { UtilisationTable } from "#components/utilisation/utilisation-table.tsx";
import { userId, workspaceId } from "#server/contracts/common.ts";
import type { Utilisation } from "#server/contracts/utilisation.ts";
import { LONGEST_DAYS, read } from "#server/services/utilisation/read.ts";
import { load, loadFrom, pageContext } from "../../page-context.ts";
import { askedDays, lastHours } from "../asked-days.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "Usage" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const HOUR = 3600_000;
type Time = Omit<Utilisation["bins"][number], "from" | "to" | "borrowed">;
/** What the chart stacks: what was used by how effective that was, and of what was free what fitted none who waited. */
type Parts = ReturnType<typeof partsOf>;
const SERIES: (Series & { key: keyof Parts })[] = [
  { key: "effective", label: "Effective", look: "used" },
  { key: "rest", label: "Rest of used", look: "partly" },
  { key: "unknown", label: "Used, effect not known", look: "unknown" },
  { key: "heldIdle", label: "Held idle", look: "held" },
  { key: "free", label: "Free", look: "free" },
  { key: "stranded", label: "Stranded", look: "stranded" },
  { key: "draining", label: "Draining", look: "warn" },
  { key: "lost", label: "Lost", look: "bad" },
];

/** What belongs to somebody. */
const HELD: readonly (keyof Parts)[] = ["effective", "rest", "unknown", "heldIdle"];

/** GPU time in the pool, by state and by team. */
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
      : await loadFrom(after, (from) => read(ctx, { ...question, search, ...(from && { after: from }) }));
  const place = {
    path: "/usage",
    question: asks,
    search,
    label: `Search by ${by}`,
  };
  // What is free or away belongs to nobody.
  const whole = team === undefined && asks.person === "" && asks.workspace === "";
  const total = usage && partsOf({ ...usage.total, stranded: usage.stranded });
  const unknown = usage === undefined ? 0 : unknownHours(usage.total);
  const series = SERIES.filter(
    ({ key }) => (key !== "unknown" || unknown > 0) && (whole || HELD.some((held) => held === key)),
  );
  const file = (format: string) => `/api/v1/utilisation?${new URLSearchParams({ ...question, format }).toString()}`;
  return (
    <>
      <LiveRefresh topics={["usage", "lease", "pool"]} seconds={30} />
      <PageHeader title="Usage" detail="GPU time in the pool, by state and by team" />
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
        <EmptyState title="The pool had no GPUs in this time">
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
              <p className="mt-3 max-w-prose text-sm text-ink-2">
                {[EFFECTIVE, ...effectiveNotes(usage.total)].join(" ")}
              </p>
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
    <Figures count={6}>
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
        label="Busy while held"
        value={formatShare(used, held)}
        detail={`${formatGpuHours(heldIdle)} GPU-h held idle`}
      />
      <Figure
        label="GPU cores busy while held"
        value={effectiveWords(usage.total)}
        detail={effectiveDetail(usage.total)}
      />
      <Figure
        label="p95 wait"
        value={usage.waitP95 === null ? "–" : formatDuration(usage.waitP95 * 1000)}
        detail={
          usage.waitMedian === null
            ? "nothing was granted"
            : `p50 ${formatDuration(usage.waitMedian * 1000)}, ${formatCount(usage.grants)} grants`
        }
      />
      <Figure
        label="Received of promised share"
        value={formatShare(delivered, promised)}
        detail={promised > 0 ? `of ${formatGpuHours(promised)} GPU-h while others waited` : "nobody shared a busy GPU"}
      />
      <Figure
        label="Fairness between teams"
        value={usage.fairness === null ? "–" : usage.fairness.toFixed(2)}
        detail={usage.fairness === null ? "fewer than two shared a busy GPU" : "of 1 (Jain)"}
      />
    </Figures>
  );
}

function effectiveDetail(total: Utilisation["total"]): string {
  const { used, effective } = total;
  if (used <= 0) return "nothing was used";
  if (effective === null) return "devices did not tell how much of their multiprocessors worked";
  const unknown = unknownHours(total);
  const rest = unknown > 0 ? `; of ${formatGpuHours(unknown)} not known` : "";
  return `${formatGpuHours(effective)} GPU-h of multiprocessors at work (SM active)${rest}`;
}

/** `2026-11-19 to 2026-11-25`; of the last hours to the minute. */
function spanWords({ from, to }: Utilisation, last: string): string {
  const minute = (iso: string) => iso.slice(0, 16).replace("T", " ");
  return last === "" ? `${from.slice(0, 10)} to ${to.slice(0, 10)}` : `${minute(from)} to ${minute(to)} UTC`;
}

function partsOf({ used, effective, effectiveKnown, effectiveEstimated: _, free, stranded, ...others }: Time) {
  return {
    ...others,
    effective: effective ?? 0,
    rest: Math.max(0, effectiveKnown - (effective ?? 0)),
    unknown: Math.max(0, used - effectiveKnown),
    ...{ free: free - stranded, stranded },
  };
}

/** GPU-hours of a stretch as GPUs on average. */
function perHour({ borrowed: _, ...bin }: Utilisation["bins"][number]): Record<string, number> {
  const hours = Math.max(1e-9, (Date.parse(bin.to) - Date.parse(bin.from)) / HOUR);
  const parts = partsOf(bin);
  return Object.fromEntries(SERIES.map(({ key }) => [key, parts[key] / hours]));
}
