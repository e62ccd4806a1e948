"use client";

import { formMilli } from "#components/form-text.ts";
import { GpuField } from "#components/ui/gpu-field.tsx";
import { CalendarForm } from "./calendar-form.tsx";
import type { QuotaCalendarView } from "./quota-calendar.tsx";
import { quotaLook, quotaWords } from "./words.ts";

function readValues(form: FormData) {
  const [guaranteedMilli, limitMilli] = [formMilli(form, "guaranteed"), formMilli(form, "limit")];
  if (limitMilli < guaranteedMilli) return "The limit is at least the guaranteed amount.";
  return { guaranteedMilli, limitMilli };
}

/** Edits how a team's quota differs by weekday and hour. */
export default function QuotaCalendarForm({
  gpuType,
  quota,
  timeZone,
  onClose,
}: {
  gpuType: string;
  quota: QuotaCalendarView;
  timeZone: string;
  onClose: () => void;
}) {
  const { teamId, teamName, windows, version, guaranteedMilli, limitMilli } = quota;
  return (
    <CalendarForm
      title={`Calendar of ${teamName} for ${gpuType}`}
      gpuType={gpuType}
      path={`/teams/${teamId}/quotas/${gpuType}/windows`}
      timeZone={timeZone}
      saved={windows}
      version={version}
      text={quotaWords}
      look={quotaLook(quota)}
      proves
      values={
        <>
          <GpuField label="Guaranteed" name="guaranteed" defaultValue={guaranteedMilli / 1000} />
          <GpuField label="Limit" name="limit" defaultValue={limitMilli / 1000} />
        </>
      }
      readValues={readValues}
      onClose={onClose}
    />
  );
}
