"use client";

import { formText } from "#components/form-text.ts";
import { Select } from "#components/ui/field.tsx";
import type { CalendarList, KindWindow } from "#server/contracts/sharing.ts";
import { CalendarCard } from "./calendar-card.tsx";
import { EditCalendar } from "./edit-calendar.tsx";
import { ANY_WORK, kindLook, kindWords } from "./words.ts";

/** Which kind of work a GPU type takes by weekday and hour. */
export function TypeCalendar({ calendar }: { calendar: CalendarList["calendars"][number] }) {
  const { gpuType, windows, version } = calendar;
  return (
    <CalendarCard
      title={`What ${gpuType} takes`}
      otherwise={ANY_WORK}
      windows={windows}
      text={kindWords}
      look={kindLook}
      actions={
        <EditCalendar
          title={`When ${gpuType} takes which work`}
          name={`Edit calendar of ${gpuType}`}
          gpuType={gpuType}
          path={`/gpu-types/${gpuType}/windows`}
          saved={windows}
          version={version}
          text={kindWords}
          look={kindLook}
          values={
            <Select label="Takes only" name="kind" className="col-span-2">
              <option value="interactive">interactive: notebooks</option>
              <option value="batch">batch: sluice run</option>
            </Select>
          }
          readValues={(form): Pick<KindWindow, "kind"> => {
            return { kind: formText(form, "kind") === "batch" ? "batch" : "interactive" };
          }}
        />
      }
    />
  );
}
