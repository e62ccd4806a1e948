import { BehindChart } from "#components/chart/behind.tsx";
import { Plot } from "#components/chart/plot.tsx";
import { formatGpuHours } from "#components/format.ts";
import { Card } from "#components/ui/page.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { TeamBudget } from "#server/contracts/team.ts";
import { burnDown } from "./burn-down.ts";

type Budget = TeamBudget["budgets"][number];

/** The units of a plot. */
const WIDTH = 1000;
const HEIGHT = 100;

type Props = {
  budget: Budget;
  month: string;
  endsAt: string;
  /** The days of all types as a file. */
  csv: string;
};

/** The GPU-hours of a month that are left, day by day, against an even pace; the days as a table behind it. */
export function BudgetCard({ budget, month, endsAt, csv }: Props) {
  const { gpuType, milliHours, usedMilliHours, spentAt, days } = budget;
  const left = Math.max(0, milliHours - usedMilliHours);
  const points = burnDown(budget, endsAt);
  const leftAfter = (index: number) => (points.soFar[index + 1]?.part ?? 0) * milliHours;
  const at = ({ day, part }: { day: number; part: number }) =>
    `${((day / points.daysInMonth) * WIDTH).toFixed(1)},${((1 - part) * HEIGHT).toFixed(1)}`;
  return (
    <Card className="px-4 py-3.5">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h3 className="font-medium">{gpuType}</h3>
        <p className="figures text-sm text-ink-2">
          <span className="font-medium text-ink">{formatGpuHours(usedMilliHours / 1000)}</span> of{" "}
          {formatGpuHours(milliHours / 1000)} GPU-h used,{" "}
          <span className="font-medium text-ink">{formatGpuHours(left / 1000)}</span> left
        </p>
      </div>
      <div className="relative mt-3 h-28">
        <Plot
          label={`GPU-hours of ${gpuType} left in ${month}: ${formatGpuHours(left / 1000)} of ${formatGpuHours(milliHours / 1000)}`}
          bars={days.map((each, index) => ({
            title: `${each.day}: ${formatGpuHours(each.milliHours / 1000)} GPU-h used, ${formatGpuHours(leftAfter(index) / 1000)} left`,
            ...{ left: (index / points.daysInMonth) * WIDTH, width: WIDTH / points.daysInMonth, parts: [] },
          }))}
        >
          <g fill="none" vectorEffect="non-scaling-stroke">
            <path
              d={`M0,${HEIGHT}H${WIDTH}M0,0V${HEIGHT}`}
              className="stroke-line-strong"
              vectorEffect="non-scaling-stroke"
            />
            <polyline
              points={`0,0 ${WIDTH},${HEIGHT}`}
              className="stroke-ink-2"
              strokeDasharray="4 4"
              vectorEffect="non-scaling-stroke"
            />
            {points.ahead && (
              <polyline
                points={points.ahead.map(at).join(" ")}
                className="stroke-warn"
                strokeWidth={2}
                strokeDasharray="2 3"
                vectorEffect="non-scaling-stroke"
              />
            )}
            <polyline
              points={points.soFar.map(at).join(" ")}
              className="stroke-accent"
              strokeWidth={2}
              vectorEffect="non-scaling-stroke"
            />
          </g>
        </Plot>
      </div>
      <div className="figures flex justify-between text-xs text-ink-2">
        <span>{`${month}-01`}</span>
        <span>{`${month}-${points.daysInMonth}`}</span>
      </div>
      <ul className="mt-1.5 flex flex-wrap gap-x-5 gap-y-1 text-sm text-ink-2">
        <li>
          <Stroke className="border-accent" /> left
        </li>
        <li>
          <Stroke className="border-dashed border-ink-2" /> even pace
        </li>
        {spentAt !== null && (
          <li>
            <Stroke className="border-dotted border-warn" /> as the team goes on now: nothing left at{" "}
            <ExactTime at={spentAt} />
          </li>
        )}
      </ul>
      <BehindChart csv={csv}>
        <table className="figures text-sm">
          <caption className="sr-only">{`GPU-hours of ${gpuType} used, day by day`}</caption>
          <thead>
            <tr className="text-left text-ink-2">
              <th scope="col" className="pr-6 font-normal">
                Day (UTC)
              </th>
              <th scope="col" className="text-right font-normal">
                GPU-h
              </th>
            </tr>
          </thead>
          <tbody>
            {days.map(({ day, milliHours: used }) => (
              <tr key={day}>
                <td className="pr-6">{day}</td>
                <td className="text-right">{formatGpuHours(used / 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </BehindChart>
    </Card>
  );
}

function Stroke({ className }: { className: string }) {
  return <span aria-hidden="true" className={`mr-1 inline-block w-5 border-t-2 align-middle ${className}`} />;
}
