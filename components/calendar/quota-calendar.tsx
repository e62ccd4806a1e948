import type { CalendarList } from "#server/contracts/sharing.ts";
import { CalendarCard } from "./calendar-card.tsx";
import { EditQuotaCalendar } from "./edit-calendar.tsx";
import { quotaLook, quotaWords } from "./words.ts";

export type QuotaCalendarView = CalendarList["calendars"][number]["quotas"][number];

/** How a team's quota differs by weekday and hour; whoever sets quotas edits it here. */
export function QuotaCalendar({
  gpuType,
  quota,
  title,
  timeZone,
  mayEdit,
}: {
  gpuType: string;
  quota: QuotaCalendarView;
  title: string;
  timeZone: string;
  mayEdit: boolean;
}) {
  return (
    <CalendarCard
      title={title}
      otherwise={quotaWords(quota)}
      windows={quota.windows}
      timeZone={timeZone}
      text={quotaWords}
      look={quotaLook(quota)}
      actions={mayEdit && <EditQuotaCalendar {...{ title, gpuType, quota, timeZone }} />}
    />
  );
}
