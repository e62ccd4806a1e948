"use client";

import { formText } from "#components/form-text.ts";
import { Select } from "#components/ui/field.tsx";
import type { KindWindow } from "#server/contracts/sharing.ts";
import { CalendarForm } from "./calendar-form.tsx";
import type { TypeCalendarView } from "./type-calendar.tsx";
import { kindLook, kindWords } from "./words.ts";

const readValues = (form: FormData): Pick<KindWindow, "kind"> => ({
  kind: formText(form, "kind") === "batch" ? "batch" : "interactive",
});

/** Edits which kind of work a GPU type takes by weekday and hour. */
export default function TypeCalendarForm({
  calendar,
  timeZone,
  onClose,
}: {
  calendar: TypeCalendarView;
  timeZone: string;
  onClose: () => void;
}) {
  const { gpuType, windows, version } = calendar;
  return (
    <CalendarForm
      title={`When ${gpuType} takes which work`}
      gpuType={gpuType}
      path={`/gpu-types/${gpuType}/windows`}
      timeZone={timeZone}
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
      readValues={readValues}
      onClose={onClose}
    />
  );
}
