import { cx } from "#components/format.ts";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { Link } from "#components/ui/link.tsx";
import { shiftMonth } from "./asked-month.ts";

export type CostBy = "team" | "person" | "workspace";
export const COST_BY: CostBy[] = ["team", "person", "workspace"];
/** The head of the column that says who. */
export const COST_HEADERS: Record<CostBy, string> = { team: "Team", person: "Person", workspace: "Workspace" };

type Address = (change: Record<string, string>) => string;

/** The month before, and the one after where it has begun. */
export function MonthNav({ month, thisMonth, address }: { month: string; thisMonth: string; address: Address }) {
  return (
    <>
      <ButtonLink href={address({ month: shiftMonth(month, -1) })} className="print:hidden">
        {shiftMonth(month, -1)}
      </ButtonLink>
      {month < thisMonth && (
        <ButtonLink href={address({ month: shiftMonth(month, 1) })} className="print:hidden">
          {shiftMonth(month, 1)}
        </ButtonLink>
      )}
    </>
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
