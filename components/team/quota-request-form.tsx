"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formMilli, formText } from "#components/form-text.ts";
import { TimeField } from "#components/time-zone/time-field.tsx";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Select, TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { GpuField } from "#components/ui/gpu-field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { QuotaRequestView } from "#server/contracts/sharing.ts";
import { instantIn } from "#server/contracts/time-zone.ts";

/** Hours that people ask for; what is approved ends alone. */
const LENGTHS: [hours: number, label: string][] = [
  [4, "4 hours"],
  [24, "a day"],
  [24 * 7, "a week"],
  [24 * 30, "30 days"],
];

/** Asks the lead for more than the quota, for a time. `initialGpus` comes from a refusal's link. */
export default function QuotaRequestForm({
  teamId,
  gpuTypes,
  initialGpus,
  onClose,
}: {
  teamId: string;
  gpuTypes: string[];
  initialGpus?: number;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const { pending, error, fields, run } = useSubmit<QuotaRequestView>([
    "gpuType",
    "limitMilli",
    "startsAt",
    "endsAt",
    "reason",
  ]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const hours = Number(formText(form, "hours"));
    const typed = formText(form, "startsAt");
    const startsAt = typed === "" ? undefined : instantIn(zone, typed);
    const begins = startsAt === undefined ? Date.now() : Date.parse(startsAt);
    const asked = await run(() =>
      api("POST", "/quota-requests", {
        teamId,
        gpuType: formText(form, "gpuType"),
        limitMilli: formMilli(form, "gpus"),
        ...(startsAt === undefined ? {} : { startsAt }),
        endsAt: new Date(begins + hours * 3_600_000).toISOString(),
        reason: formText(form, "reason"),
      }),
    );
    if (!asked) return;
    onClose();
    toast("Your request is with the team's leads. You are told when it is decided.");
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title="Request more"
      description="On top of the team's limit, for a time. A lead or an admin decides. It starts and ends automatically."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <div className="grid grid-cols-2 gap-4">
          <Select label="GPU type" name="gpuType" error={fields.gpuType}>
            {gpuTypes.map((gpuType) => (
              <option key={gpuType}>{gpuType}</option>
            ))}
          </Select>
          <GpuField
            label="How much more"
            name="gpus"
            min={0.001}
            defaultValue={initialGpus ?? 1}
            error={fields.limitMilli}
          />
          <TimeField label="From" name="startsAt" hint="Leave empty to start now" error={fields.startsAt} />
          <Select label="For how long" name="hours" defaultValue="24" error={fields.endsAt}>
            {LENGTHS.map(([hours, label]) => (
              <option key={hours} value={hours}>
                {label}
              </option>
            ))}
          </Select>
        </div>
        <TextArea label="What for" name="reason" required maxLength={500} error={fields.reason} />
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Send request" saving="Asking" />
      </form>
    </Dialog>
  );
}
