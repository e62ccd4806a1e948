"use client";

import { formText } from "#components/form-text.ts";
import { Field } from "#components/ui/field.tsx";
import { CalendarForm } from "./calendar-form.tsx";
import type { QuotaCalendarView } from "./quota-calendar.tsx";
import { quotaLook, quotaWords } from "./words.ts";

const amount = { type: "number", min: 0, step: 0.001, required: true, inputMode: "decimal", suffix: "GPUs" } as const;

function readValues(form: FormData) {
  const milli = (name: string) => Math.round(Number(formText(form, name)) * 1000);
  const [guaranteedMilli, limitMilli] = [milli("guaranteed"), milli("limit")];
  if (limitMilli < guaranteedMilli) return "The limit is at least the guaranteed amount.";
  return { guaranteedMilli, limitMilli };
}

/** Edits how a team's quota differs by weekday and hour. */
export default function QuotaCalendarForm({
  gpuType,
  quota,
  onClose,
}: {
  gpuType: string;
  quota: QuotaCalendarView;
  onClose: () => void;
}) {
  const { teamId, teamName, windows, version, guaranteedMilli, limitMilli } = quota;
  return (
    <CalendarForm
      title={`Calendar of ${teamName} for ${gpuType}`}
      gpuType={gpuType}
      path={`/teams/${teamId}/quotas/${gpuType}/windows`}
      saved={windows}
      version={version}
      text={quotaWords}
      look={quotaLook(quota)}
      proves
      values={
        <>
          <Field label="Guaranteed" name="guaranteed" {...amount} defaultValue={guaranteedMilli / 1000} />
          <Field label="Limit" name="limit" {...amount} defaultValue={limitMilli / 1000} />
        </>
      }
      readValues={readValues}
      onClose={onClose}
    />
  );
}
