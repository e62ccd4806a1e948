import type { ReactNode } from "react";
import { Card } from "#components/ui/page.tsx";
import { daysOfWindows, groupsOf, type Look, type Window } from "./week.ts";
import { WeekGrid } from "./week-grid.tsx";

/** A calendar: the week as a picture, and the same in words. */
export function CalendarCard<W extends Window>({
  title,
  otherwise,
  windows,
  timeZone,
  text,
  look,
  actions,
}: {
  title: string;
  /** What holds outside the windows. */
  otherwise: string;
  windows: readonly W[];
  /** By whose clocks. */
  timeZone: string;
  text: (window: W) => string;
  look: (window: W) => Look;
  actions?: ReactNode;
}) {
  return (
    <Card className="px-4 py-3.5">
      <div className="mb-2.5 flex flex-wrap items-center justify-between gap-3">
        <h3 className="font-medium">{title}</h3>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
      {windows.length > 0 && <WeekGrid label={title} days={daysOfWindows(windows, text, look)} />}
      <dl className="figures mt-2 grid gap-y-0.5 text-sm sm:grid-cols-[max-content_minmax(0,1fr)] sm:gap-x-6">
        {groupsOf(windows, text).map((group, index) => (
          <div key={`${group.when} ${group.windows[0]?.fromMinute}`} className="sm:contents">
            <dt className="text-ink-2">
              <span className="mr-2">{index + 1}</span>
              {group.when} {timeZone}
            </dt>
            <dd>{group.windows[0] && text(group.windows[0])}</dd>
          </div>
        ))}
        <div className="sm:contents">
          <dt className="text-ink-2">{windows.length === 0 ? "At every hour" : "Otherwise"}</dt>
          <dd>{otherwise}</dd>
        </div>
      </dl>
    </Card>
  );
}
