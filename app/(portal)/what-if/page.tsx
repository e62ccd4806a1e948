import { BehindChart } from "#components/chart/behind.tsx";
import { type Series, TimeChart } from "#components/chart/time-chart.tsx";
import { formatGpuHours, formatMark, formatMoney, plural } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { Card, PageHeader, Section } from "#components/ui/page.tsx";
import { State } from "#components/ui/state.tsx";
import { Elapsed, RelativeTime } from "#components/ui/time.tsx";
import { BinTable } from "#components/what-if/bin-table.tsx";
import { OutcomeTable } from "#components/what-if/outcome-table.tsx";
import { TeamOutcomes } from "#components/what-if/team-outcomes.tsx";
import { verdict } from "#components/what-if/verdict.ts";
import { type Proposed, WhatIfForm } from "#components/what-if/what-if-form.tsx";
import type { WhatIfList, WhatIfType, WhatIfView } from "#server/contracts/what-if.ts";
import { get } from "#server/services/what-if/get.ts";
import { list } from "#server/services/what-if/list.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "What-if" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const DAY_MS = 24 * 3_600_000;
const SERIES: Series[] = [
  { key: "held", label: "Held", look: "used" },
  { key: "waiting", label: "Waited for", look: "warn" },
];

/** The logged demand on another pool, beside the pool of now. */
export default async function WhatIfPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const { run } = await searchParams;
  const { present, recent } = await load(() => list(ctx));
  const view = typeof run === "string" ? await load(() => get(ctx, { id: run })) : undefined;
  return (
    <>
      <PageHeader title="What-if" detail="Past requests, replayed by the scheduler on a different pool" />
      {present.length === 0 ? (
        <EmptyState title="There is no GPU type yet">
          When a GPU server has joined, or a team has a quota, other pools can be tried here.
        </EmptyState>
      ) : (
        <WhatIfForm key={view?.id ?? ""} present={present} proposed={proposedOf(ctx.now(), view)} />
      )}
      {view && <Answer view={view} />}
      {recent.length > 0 && <Recent recent={recent} shown={view?.id} />}
    </>
  );
}

function proposedOf(now: Date, view: WhatIfView | undefined): Proposed {
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  if (view === undefined)
    return { days: { from: day(now.getTime() - 13 * DAY_MS), to: day(now.getTime()) }, types: [] };
  const { from, to, types } = view.question;
  return { days: { from: from.slice(0, 10), to: day(Date.parse(to) - 1) }, types };
}

function Answer({ view }: { view: WhatIfView }) {
  if (view.state === "failed") {
    return (
      <p role="alert" className="mb-8 rounded-md bg-bad-soft px-3 py-2 text-bad">
        {view.message}
      </p>
    );
  }
  if (view.result === null) return <Progress view={view} />;
  const { currency, types } = view.result;
  const file = (format: string) => `/api/v1/what-ifs/${view.id}?format=${format}`;
  return types.map((type) => (
    <Section
      key={type.gpuType}
      title={type.gpuType}
      detail={`${view.question.from.slice(0, 10)} to ${new Date(Date.parse(view.question.to) - 1).toISOString().slice(0, 10)}, ${plural(type.assumed.asked, "request")}`}
      actions={<DownloadCsv href={file("csv")} />}
    >
      <p className="figures mb-3 font-medium">
        {verdict(type.now, type.proposed, (cents) => formatMoney(Math.round(cents), currency))}
      </p>
      <OutcomeTable type={type} currency={currency} />
      <Charts type={type} csv={file("csv-time")} />
      <TeamOutcomes gpuType={type.gpuType} teams={type.teams} />
      <Assumptions type={type} />
    </Section>
  ));
}

function Progress({ view }: { view: WhatIfView }) {
  const percent = Math.round(view.progress * 100);
  return (
    <Card className="mb-8 px-3.5 py-3">
      <LiveRefresh topics={["what-if"]} />
      <div className="flex items-center justify-between gap-4">
        <State tone="busy">{percent === 0 ? "Reading the log" : "Simulating"}</State>
        <span className="figures text-ink-2">
          {percent} %, <Elapsed from={view.askedAt} />
        </span>
      </div>
      <progress
        aria-label="Progress of the simulation"
        value={view.progress}
        max={1}
        className="progress mt-2 block h-2 w-full"
      />
      <p className="mt-2 text-sm text-ink-2">You may leave this page: the answer is kept, and listed below.</p>
    </Card>
  );
}

function Charts({ type, csv }: { type: WhatIfType; csv: string }) {
  const { bins, gpuType } = type;
  const [from, to] = [bins[0]?.from ?? "", bins.at(-1)?.to ?? ""];
  const highest = Math.max(
    0,
    ...bins.flatMap(({ now, proposed }) => [now.held + now.waiting, proposed.held + proposed.waiting]),
  );
  const most = (which: "now" | "proposed", key: "held" | "waiting") =>
    formatGpuHours(Math.max(0, ...bins.map((bin) => bin[which][key])));
  return (
    <Card className="my-4 px-3.5 py-3">
      <div className="grid gap-x-8 gap-y-5 lg:grid-cols-2">
        {(["now", "proposed"] as const).map((which) => (
          <div key={which} className="min-w-0">
            <h3 className="mb-1 font-medium">{which === "now" ? "Now" : "Proposed"}</h3>
            <TimeChart
              label={`${gpuType}, ${which}: at most ${most(which, "held")} GPUs held and ${most(which, "waiting")} waited for`}
              {...{ series: SERIES, from, to, highest, zone: "UTC" }}
              bins={bins.map((bin) => ({ from: bin.from, to: bin.to, values: bin[which] }))}
              format={(value) => `${formatGpuHours(value)} GPUs`}
              mark={(value, step) => `${formatMark(value, step)} GPUs`}
            />
          </div>
        ))}
      </div>
      <BehindChart csv={csv}>
        <BinTable gpuType={gpuType} bins={bins} />
      </BehindChart>
    </Card>
  );
}

/** What a replay cannot know, and what is taken instead. */
function Assumptions({ type: { assumed } }: { type: WhatIfType }) {
  const { asked, carried, retries, lengthGuessed } = assumed;
  return (
    <details className="mt-4 text-sm text-ink-2">
      <summary className="hover:text-ink">What is assumed</summary>
      <ul className="mt-2 max-w-prose list-disc space-y-1 pl-5">
        <li>
          {plural(asked, "request")} of this time are played, those of removed workspaces too; {carried} that ran or
          waited when it began take their part and are not counted.
        </li>
        <li>
          Who was granted waits for as long as it takes. Who gave up leaves after the time they really waited, and
          counts with it; who was refused waits as long as they had said.
        </li>
        <li>
          {lengthGuessed} never ran to their end (given up, refused, taken back, lost with their server, or still
          running): the median length of their team is taken, and never less than they had.
        </li>
        <li>
          {retries} came from the same notebook within 15 minutes after one that came to nothing: they are left out when
          that one is served, which then takes their length.
        </li>
        <li>
          Quotas, weights, priorities and calendars are those of now; reservations and approved requests for more are
          those of that time. Devices are never away or drained; budgets, stop switches and memory parked on a device
          play no part; past use is counted from the beginning of the time.
        </li>
        <li>Hardware that is paid by the month costs in proportion to its number.</li>
      </ul>
    </details>
  );
}

const states = { running: ["busy", "running"], done: ["ok", "answered"], failed: ["bad", "failed"] } as const;

function Recent({ recent, shown }: { recent: WhatIfList["recent"]; shown: string | undefined }) {
  return (
    <Section title="Recent simulations" detail="An unchanged simulation is not run again">
      <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
        {recent.map(({ id, question, state, askedAt }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-6 gap-y-1 px-3.5 py-2.5">
            <Link
              href={`/what-if?run=${id}`}
              aria-current={id === shown ? "true" : undefined}
              className="font-medium underline underline-offset-4"
            >
              {question.types.map(({ gpuType, gpus }) => `${gpus ?? "as many"} ${gpuType}`).join(", ")}
            </Link>
            <span className="text-ink-2">
              {question.from.slice(0, 10)} to {new Date(Date.parse(question.to) - 1).toISOString().slice(0, 10)}
            </span>
            <span className="ml-auto">
              <State tone={states[state][0]}>{states[state][1]}</State>
            </span>
            <span className="text-ink-2">
              <RelativeTime at={askedAt} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
