import { askedMonth } from "#components/cost/asked-month.ts";
import { CloseMonth } from "#components/cost/close-month.tsx";
import { CostBars } from "#components/cost/cost-bars.tsx";
import { CostTable } from "#components/cost/cost-table.tsx";
import { EditPrice } from "#components/cost/edit-price.tsx";
import { COST_BY, COST_HEADERS, MonthNav, SplitBy } from "#components/cost/month-nav.tsx";
import { formatChange, formatGpuHours, formatMoney, formatPrice, formatShare } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { Link } from "#components/ui/link.tsx";
import { Card, PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { Badge } from "#components/ui/state.tsx";
import type { CostReport } from "#server/contracts/cost.ts";
import { firstMonth } from "#server/services/cost/first-month.ts";
import { report } from "#server/services/cost/report.ts";
import { rowsOf } from "#server/services/cost/rows.ts";
import { trend } from "#server/services/cost/trend.ts";
import { load, loadFrom, pageContext } from "../../page-context.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "Costs" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };
const PAGE = 100;
/** Maximum bars. The table below lists every row. */
const BARS = 8;

/** A month's hardware, split to whoever held it; what nobody held stands in lines of its own. */
export default async function CostsPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const { isAdmin, teams } = await load(() => ledTeams(ctx));
  const asked = await searchParams;
  const { month, thisMonth } = askedMonth(asked.month, ctx.now());
  const by = COST_BY.find((each) => each === asked.by) ?? "team";
  const team = teams.find((each) => each.id === asked.team) ?? (isAdmin ? undefined : teams[0]);
  const costs = await load(() => report(ctx, { month, ...(team ? { teamId: team.id } : {}) }, by));
  const question = { month, by, ...(team ? { team: team.id } : {}) };
  const address = (change: Record<string, string>) =>
    `/costs?${new URLSearchParams({ ...question, ...change }).toString()}`;
  const file = `/api/v1/costs?${new URLSearchParams({ month, format: "csv", ...(team ? { teamId: team.id } : {}) }).toString()}`;
  const search = typeof asked.search === "string" ? asked.search.slice(0, 100) : "";
  const after = typeof asked.after === "string" ? asked.after.slice(0, 100) : undefined;
  const limit = asked.rows === "all" ? costs.lines.length : PAGE;
  const list = await loadFrom(after, (from) => rowsOf(costs, { by, search, limit, after: from }));
  const place = { path: "/costs", question, search, label: `Search by ${by}` };
  const total = {
    hours: costs.lines.reduce((sum, line) => sum + line.hours, 0),
    cents: costs.types.length === 0 && costs.unpriced.length > 0 ? null : costs.cents,
  };
  const [first, months] = await load(() =>
    Promise.all([firstMonth(ctx), trend(ctx, { month, ...(team ? { teamId: team.id } : {}) }, costs)]),
  );
  const mayClose = isAdmin && !team && costs.closed === null && month >= first && month < thisMonth;
  return (
    <>
      {costs.closed === null && <LiveRefresh topics={["usage", "lease", "pool"]} seconds={60} />}
      <PageHeader
        title={`Costs of ${month}`}
        detail={
          <span className="flex flex-wrap items-center gap-2">
            {team && `Team ${team.name}.`}
            {costs.closed ? (
              <Badge tone="ok">
                closed by {costs.closed.by} on {costs.closed.at.slice(0, 10)}
              </Badge>
            ) : month === thisMonth ? (
              <>so far, with today&apos;s prices</>
            ) : (
              <>not closed: with today&apos;s prices</>
            )}
          </span>
        }
        actions={<MonthNav {...{ month, first, thisMonth, address }} />}
      />
      {isAdmin && costs.unpriced.length > 0 && (
        <p className="mb-5 rounded-md bg-warn-soft px-3 py-2 text-warn">
          No price: {costs.unpriced.join(", ")}. Their hours are listed but not part of any total.
        </p>
      )}
      <Section
        title="Hardware"
        detail={team ? "The share of the team" : "The total of the rows below"}
        actions={mayClose && <CloseMonth month={month} total={formatMoney(costs.cents, costs.currency)} />}
      >
        <TypeCards costs={costs} mayPrice={isAdmin && costs.closed === null && team === undefined} />
      </Section>
      {months.length > 1 && (
        <Section title="By month">
          <Card className="px-3.5 py-3">
            <CostBars
              label="Costs by month"
              bars={months.map((one, index) => ({
                // A month that has just begun is no change.
                more: one.month === thisMonth ? "" : changeFrom(months[index - 1], one),
                ...{ id: one.month, name: one.month, isCurrent: one.month === month, value: one.cents ?? 0 },
                text: one.cents === null ? "no price" : formatMoney(one.cents, costs.currency),
                note: one.isClosed ? "closed" : one.month === thisMonth ? "so far" : "open",
              }))}
            />
          </Card>
        </Section>
      )}
      <Section
        title="Costs by team, person or workspace"
        actions={
          <>
            <SplitBy {...{ by, address }} />
            {list.rows.length < list.total && (
              <Link
                href={address({ rows: "all", ...(search && { search }) })}
                className="text-sm text-accent underline underline-offset-4 print:hidden"
              >
                All on one page, to print
              </Link>
            )}
            <DownloadCsv href={file} />
          </>
        }
      >
        {(list.total > PAGE || search !== "") && <SearchList {...place} />}
        {search === "" && after === undefined && list.rows.some((row) => (row.cents ?? 0) > 0) && (
          <Card className="mb-3 px-3.5 py-3">
            <CostBars
              label={`Highest costs by ${by}`}
              bars={list.rows.slice(0, BARS).map((row) => ({
                ...{ id: row.id, name: row.name, value: row.cents ?? 0 },
                text: row.cents === null ? "no price" : formatMoney(row.cents, costs.currency),
                more: row.cents === null ? "" : `${formatShare(row.cents, costs.cents)} of the total`,
              }))}
            />
          </Card>
        )}
        <CostTable rows={list.rows} header={COST_HEADERS[by]} currency={costs.currency} total={total} />
        <Paging {...place} shown={list.rows.length} total={list.total} next={list.next} first={after === undefined} />
      </Section>
    </>
  );
}

type Month = { month: string; cents: number | null };

/** `+8 % from 2026-09`; empty without two amounts to compare. */
function changeFrom(before: Month | undefined, { cents }: Month): string {
  if (!before?.cents || cents === null) return "";
  return `${formatChange(before.cents, cents)} from ${before.month}`;
}

function TypeCards({ costs, mayPrice }: { costs: CostReport; mayPrice: boolean }) {
  const { types, unpriced, lines, currency } = costs;
  if (types.length + unpriced.length === 0) {
    return <Card className="px-3.5 py-3 text-ink-2">The pool had no GPUs in this month.</Card>;
  }
  return (
    <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
      {types.map(({ gpuType, basis, amount, version, hours, cents }) => (
        <li key={gpuType} className="flex flex-wrap items-center gap-x-6 gap-y-1 px-3.5 py-2.5">
          <span className="min-w-16 font-medium">{gpuType}</span>
          <span className="text-ink-2">
            {formatPrice(amount, currency)} {basis === "hour" ? "per GPU-hour" : "per month for all GPUs"}
          </span>
          <span className="figures ml-auto">{formatGpuHours(hours)} GPU-hours</span>
          <span className="figures font-medium">{formatMoney(cents, currency)}</span>
          {mayPrice && <EditPrice gpuType={gpuType} currency={currency} price={{ basis, amount, version }} />}
        </li>
      ))}
      {unpriced.map((gpuType) => (
        <li key={gpuType} className="flex flex-wrap items-center gap-x-6 gap-y-1 px-3.5 py-2.5">
          <span className="min-w-16 font-medium">{gpuType}</span>
          <span className="text-ink-2">no price</span>
          <span className="figures ml-auto">
            {formatGpuHours(
              lines.reduce((sum, line) => sum + (line.gpuType === gpuType && line.cents === null ? line.hours : 0), 0),
            )}{" "}
            GPU-hours
          </span>
          {mayPrice && <EditPrice gpuType={gpuType} currency={currency} />}
        </li>
      ))}
    </ul>
  );
}
