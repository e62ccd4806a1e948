"use client";

import { formText } from "#components/form-text.ts";
import { Field } from "#components/ui/field.tsx";
import type { CalendarList } from "#server/contracts/sharing.ts";
import { CalendarCard } from "./calendar-card.tsx";
import { EditCalendar } from "./edit-calendar.tsx";
import { quotaLook, quotaWords } from "./words.ts";

type QuotaCalendarView = CalendarList["calendars"][number]["quotas"][number];

/** How a team's quota differs by weekday and hour; whoever sets quotas edits it here. */
export function QuotaCalendar({
  gpuType,
  quota,
  title,
  mayEdit,
}: {
  gpuType: string;
  quota: QuotaCalendarView;
  title: string;
  mayEdit: boolean;
}) {
  const { teamId, teamName, windows, version } = quota;
  const look = quotaLook(quota);
  const amount = { type: "number", min: 0, step: 0.001, required: true, inputMode: "decimal" } as const;
  return (
    <CalendarCard
      title={title}
      otherwise={quotaWords(quota)}
      windows={windows}
      text={quotaWords}
      look={look}
      actions={
        mayEdit && (
          <EditCalendar
            title={`Calendar of ${teamName} for ${gpuType}`}
            name={`Edit calendar of ${title}`}
            gpuType={gpuType}
            path={`/teams/${teamId}/quotas/${gpuType}/windows`}
            saved={windows}
            version={version}
            text={quotaWords}
            look={look}
            proves
            values={
              <>
                <Field
                  label="Guaranteed"
                  name="guaranteed"
                  {...amount}
                  defaultValue={quota.guaranteedMilli / 1000}
                  suffix="GPUs"
                />
                <Field label="Limit" name="limit" {...amount} defaultValue={quota.limitMilli / 1000} suffix="GPUs" />
              </>
            }
            readValues={(form) => {
              const milli = (name: string) => Math.round(Number(formText(form, name)) * 1000);
              const [guaranteedMilli, limitMilli] = [milli("guaranteed"), milli("limit")];
              if (limitMilli < guaranteedMilli) return "The limit is at least the guaranteed amount.";
              return { guaranteedMilli, limitMilli };
            }}
          />
        )
      }
    />
  );
}
