import { cx } from "#components/format.ts";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { Link } from "#components/ui/link.tsx";
import { shiftMonth } from "./asked-month.ts";

export type CostBy = "team" | "person" | "workspace";
export const COST_BY: CostBy[] = ["team", "person", "workspace"];
/** The head of the column that says who. */
export const COST_HEADERS: Record<CostBy, string> = { team: "Team", person: "Person", workspace: "Workspace" };

type Address = (change: Record<string, string>) => string;

type Months = { month: string; first: string; thisMonth: string; address: Address };

/**
 * `‹ 2026-10 ›`: the month before and the one after, from the first with a GPU in the pool to the current one. Each keeps
 * its place when the other is missing, so that a second click meets no other button.
 */
export function MonthNav({ month, first, thisMonth, address }: Months) {
  return (
    <nav aria-label="Month" className="flex items-center gap-2 print:hidden">
      <Step to={shiftMonth(month, -1)} there={month > first} sign="‹" what="Previous month" address={address} />
      <span aria-current="date" className="figures font-medium">
        {month}
      </span>
      <Step to={shiftMonth(month, 1)} there={month < thisMonth} sign="›" what="Next month" address={address} />
    </nav>
  );
}

type StepProps = { to: string; there: boolean; sign: string; what: string; address: Address };

function Step({ to, there, sign, what, address }: StepProps) {
  if (!there) return <span aria-hidden="true" className="size-8" />;
  return (
    <ButtonLink href={address({ month: to })} aria-label={`${what}, ${to}`} title={to} className="w-8">
      {sign}
    </ButtonLink>
  );
}

/** By what a table is split. */
export function SplitBy({ by, address }: { by: CostBy; address: Address }) {
  return (
    <nav aria-label="Split by" className="flex gap-1 text-sm print:hidden">
      {COST_BY.map((each) => (
        <Link
          key={each}
          href={address({ by: each })}
          aria-current={each === by ? "true" : undefined}
          className={cx("rounded-md px-2 py-1", each === by ? "bg-accent-soft font-medium" : "hover:bg-hover")}
        >
          by {each}
        </Link>
      ))}
    </nav>
  );
}
