import type { CalendarList } from "#server/contracts/sharing.ts";
import { CalendarCard } from "./calendar-card.tsx";
import { EditTypeCalendar } from "./edit-calendar.tsx";
import { ANY_WORK, kindLook, kindWords } from "./words.ts";

export type TypeCalendarView = CalendarList["calendars"][number];

/** Which kind of work a GPU type takes by weekday and hour. */
export function TypeCalendar({ calendar, timeZone }: { calendar: TypeCalendarView; timeZone: string }) {
  return (
    <CalendarCard
      title={`Work that ${calendar.gpuType} accepts`}
      otherwise={ANY_WORK}
      windows={calendar.windows}
      timeZone={timeZone}
      text={kindWords}
      look={kindLook}
      actions={<EditTypeCalendar calendar={calendar} timeZone={timeZone} />}
    />
  );
}
