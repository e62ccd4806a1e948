import { askedMonth } from "#components/cost/asked-month.ts";
import { CloseMonth } from "#components/cost/close-month.tsx";
import { CostTable } from "#components/cost/cost-table.tsx";
import { EditPrice } from "#components/cost/edit-price.tsx";
import { COST_BY, COST_HEADERS, MonthNav, SplitBy } from "#components/cost/month-nav.tsx";
import { formatGpuHours, formatMoney, formatPrice } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { Link } from "#components/ui/link.tsx";
import { Card, PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import { Badge } from "#components/ui/state.tsx";
import type { CostReport } from "#server/contracts/cost.ts";
import { report } from "#server/services/cost/report.ts";
import { rowsOf } from "#server/services/cost/rows.ts";
import { load, loadFrom, pageContext } from "../../page-context.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "Costs" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };
const PAGE = 100;

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
  const total = { hours: costs.lines.reduce((sum, line) => sum + line.hours, 0), cents: costs.cents };
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
        actions={
          <>
            <MonthNav {...{ month, thisMonth, address }} />
            {isAdmin && !team && costs.closed === null && month < thisMonth && (
              <CloseMonth month={month} total={formatMoney(costs.cents, costs.currency)} />
            )}
          </>
        }
      />
      {isAdmin && costs.unpriced.length > 0 && (
        <p className="mb-5 rounded-md bg-warn-soft px-3 py-2 text-warn">
          Without a price, and so not in the sum: {costs.unpriced.join(", ")}.
        </p>
      )}
      <Section title="Hardware" detail={team ? "As far as the team held it" : "The lines below sum to it"}>
        <TypeCards costs={costs} mayPrice={isAdmin && costs.closed === null && team === undefined} />
      </Section>
      <Section
        title="Who it is for"
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
        <CostTable rows={list.rows} header={COST_HEADERS[by]} currency={costs.currency} total={total} />
        <Paging {...place} shown={list.rows.length} total={list.total} next={list.next} first={after === undefined} />
      </Section>
    </>
  );
}

function TypeCards({ costs, mayPrice }: { costs: CostReport; mayPrice: boolean }) {
  const { types, unpriced, currency } = costs;
  if (types.length + unpriced.length === 0) {
    return <Card className="px-3.5 py-3 text-ink-2">Nothing was in the pool in this month.</Card>;
  }
  return (
    <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
      {types.map(({ gpuType, basis, amount, version, hours, cents }) => (
        <li key={gpuType} className="flex flex-wrap items-center gap-x-6 gap-y-1 px-3.5 py-2.5">
          <span className="min-w-16 font-medium">{gpuType}</span>
          <span className="text-ink-2">
            {formatPrice(amount, currency)} {basis === "hour" ? "a GPU and hour" : "a month for all of it"}
          </span>
          <span className="figures ml-auto">{formatGpuHours(hours)} GPU-hours</span>
          <span className="figures font-medium">{formatMoney(cents, currency)}</span>
          {mayPrice && <EditPrice gpuType={gpuType} currency={currency} price={{ basis, amount, version }} />}
        </li>
      ))}
      {unpriced.map((gpuType) => (
        <li key={gpuType} className="flex flex-wrap items-center gap-x-6 gap-y-1 px-3.5 py-2.5">
          <span className="min-w-16 font-medium">{gpuType}</span>
          <span className="mr-auto text-ink-2">has no price</span>
          {mayPrice && <EditPrice gpuType={gpuType} currency={currency} />}
        </li>
      ))}
    </ul>
  );
}
