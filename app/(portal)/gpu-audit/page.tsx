import { askedMonth } from "#components/cost/asked-month.ts";
import { COST_BY, COST_HEADERS, MonthNav, SplitBy } from "#components/cost/month-nav.tsx";
import { WasteTable } from "#components/cost/waste-table.tsx";
import { formatGpuHours, formatMoney, formatShare } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { Figure, Figures, PageHeader, Section } from "#components/ui/page.tsx";
import { Paging, SearchList } from "#components/ui/paging.tsx";
import type { Waste } from "#server/contracts/cost.ts";
import { firstMonth } from "#server/services/cost/first-month.ts";
import { waste as readWaste } from "#server/services/cost/waste.ts";
import { load, loadFrom, pageContext } from "../../page-context.ts";
import { ledTeams } from "../led-teams.ts";

export const metadata = { title: "GPU audit" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const PARTS: Record<Waste["parts"][number]["what"], string> = {
  idle: "Held idle",
  free: "Free",
  draining: "Draining",
  lost: "Lost: server away",
};

/** What GPU time did nothing in a month, in hours and in money, and who held it. */
export default async function GpuAuditPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const { isAdmin, teams } = await load(() => ledTeams(ctx));
  const asked = await searchParams;
  const one = (name: string) => (typeof asked[name] === "string" ? asked[name].slice(0, 100) : "");
  const { month, thisMonth } = askedMonth(asked.month, ctx.now());
  const by = COST_BY.find((each) => each === asked.by) ?? "team";
  const team = teams.find((each) => each.id === asked.team) ?? (isAdmin ? undefined : teams[0]);
  const [search, after] = [one("search"), one("after")];
  const whose = team ? { teamId: team.id } : {};
  const waste = await loadFrom(after, (from) =>
    readWaste(ctx, { month, by, search, ...whose, ...(from && { after: from }) }),
  );
  const question = { month, by, ...(team ? { team: team.id } : {}) };
  const address = (change: Record<string, string>) =>
    `/gpu-audit?${new URLSearchParams({ ...question, ...change }).toString()}`;
  const file = `/api/v1/costs/waste?${new URLSearchParams({ month, by, ...(team ? { teamId: team.id } : {}), format: "csv" }).toString()}`;
  const place = { path: "/gpu-audit", question, search, label: `Search by ${by}` };
  return (
    <>
      <LiveRefresh topics={["usage", "lease", "pool"]} seconds={60} />
      <PageHeader
        title={`GPU audit of ${month}`}
        detail={
          team ? `What team ${team.name} held and did nothing with` : "GPU time that did nothing, and what it cost"
        }
        actions={<MonthNav {...{ month, first: await firstMonth(ctx), thisMonth, address }} />}
      />
      {waste.unpriced.length > 0 && (
        <p className="mb-5 rounded-md bg-warn-soft px-3 py-2 text-warn">
          No price: {waste.unpriced.join(", ")}. Their hours are counted but not part of any total.
        </p>
      )}
      <Figures>
        {waste.parts.map((part) => (
          <Figure
            key={part.what}
            label={PARTS[part.what]}
            value={formatGpuHours(part.hours)}
            unit="GPU-h"
            detail={`${formatShare(part.hours, waste.hours)} of all${part.cents === null ? "" : `, ${formatMoney(part.cents, waste.currency)}`}`}
          />
        ))}
      </Figures>
      <Section
        title="Held idle, by whom"
        detail={
          isAdmin ? (
            <>
              An idle limit gives such time back:{" "}
              <Link href="/policies" className="text-accent underline underline-offset-4">
                Policies
              </Link>
            </>
          ) : (
            "An idle limit in the team's policy gives such time back"
          )
        }
        actions={
          <>
            <SplitBy {...{ by, address }} />
            <DownloadCsv href={file} />
          </>
        }
      >
        {(waste.total > waste.rows.length || search !== "") && <SearchList {...place} />}
        {waste.rows.length === 0 && search === "" ? (
          <EmptyState title="Nobody held a GPU in this month">What is held and does nothing stands here.</EmptyState>
        ) : (
          <WasteTable rows={waste.rows} header={COST_HEADERS[by]} currency={waste.currency} />
        )}
        <Paging {...place} shown={waste.rows.length} total={waste.total} next={waste.next} first={after === ""} />
      </Section>
    </>
  );
}
