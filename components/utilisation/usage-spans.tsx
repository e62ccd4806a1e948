import { cx } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { LAST_HOURS, type UsageQuestion, usageHref } from "./usage-question.ts";

const DAYS = [7, 30, 90, 365];

/** The times that are asked for most, one press away; the rest of the question stays. */
export function UsageSpans({ question, now }: { question: UsageQuestion; now: Date }) {
  const dayOf = (before: number) => new Date(now.getTime() - before * 86_400_000).toISOString().slice(0, 10);
  const spans = [
    ...LAST_HOURS.map((last) => ({
      label: `${last} h`,
      words: last === "1" ? "last hour" : `last ${last} hours`,
      last,
    })),
    ...DAYS.map((days) => ({
      ...{ label: `${days} d`, words: `last ${days} days` },
      ...{ last: "" as const, from: dayOf(days - 1), to: dayOf(0) },
    })),
  ];
  return (
    <nav aria-label="Time" className="mb-6 flex flex-wrap gap-1 text-sm print:hidden">
      {spans.map(({ label, words, ...span }) => {
        const next = { ...question, ...span };
        const active =
          span.last === question.last && (span.last !== "" || (next.from === question.from && next.to === question.to));
        return (
          <Link
            key={label}
            href={usageHref(next)}
            aria-label={`${label}, ${words}`}
            aria-current={active ? "true" : undefined}
            className={cx("figures rounded-md px-2 py-1", active ? "bg-accent-soft font-medium" : "hover:bg-hover")}
          >
            {label}
          </Link>
        );
      })}
    </nav>
  );
}
