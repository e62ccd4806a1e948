"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { Packing } from "#components/calendar/packing.tsx";
import { formText } from "#components/form-text.ts";
import { formatAmount } from "#components/format.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { usePreview } from "#components/use-preview.ts";
import { useSubmit } from "#components/use-submit.ts";
import type { ReservationEffects, ReservationView } from "#server/contracts/sharing.ts";

/** What may be reserved: a team, and the GPU types that it has a quota for. */
export type Reservable = { id: string; name: string; gpuTypes: string[] };

const FIELDS = ["teamId", "gpuType", "milli", "unitMilli", "startsAt", "endsAt", "note"];

/** The fields as the API takes them; times are typed in UTC, as every page shows them. */
function readReservation(form: FormData, teams: Reservable[]) {
  const milli = (name: string) => Math.round(Number(formText(form, name)) * 1000);
  const instant = (name: string) => `${formText(form, name)}:00Z`;
  const [only] = teams;
  return {
    teamId: teams.length === 1 ? only?.id : formText(form, "teamId"),
    gpuType: formText(form, "gpuType"),
    milli: milli("amount"),
    unitMilli: milli("unit"),
    startsAt: instant("startsAt"),
    endsAt: instant("endsAt"),
    note: formText(form, "note"),
  };
}

/** Reserves a part of the pool for a team and a time; whom that displaces stands below the fields before it is made. */
export default function ReservationForm({ teams, onClose }: { teams: Reservable[]; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run } = useSubmit<ReservationView>(FIELDS);
  const { preview: effects, ask } = usePreview<ReservationEffects>();
  const gpuTypes = [...new Set(teams.flatMap((team) => team.gpuTypes))].sort();
  const askEffects = (form: HTMLFormElement) => {
    ask(() => {
      if (!form.checkValidity()) return undefined;
      return api("POST", "/reservations/preview", readReservation(new FormData(form), teams));
    });
  };
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const input = readReservation(new FormData(event.currentTarget), teams);
    if (!(await run(() => api("POST", "/reservations", input)))) return;
    onClose();
    toast("Reserved. It is on top of the team's quota while it lasts.");
    router.refresh();
  };
  const amount = { type: "number", min: 0.001, step: 0.001, required: true, inputMode: "decimal" } as const;
  const [only] = teams;
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={teams.length === 1 ? `Reserve for ${only?.name}` : "Reserve"}
      description="On top of the team's guarantee, for a time: a class, a deadline. It ends alone. Times are UTC."
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => void submit(event)}
        onInput={(event) => askEffects(event.currentTarget)}
      >
        <div className="grid grid-cols-2 gap-4">
          {teams.length > 1 && (
            <Select label="Team" name="teamId" error={fields.teamId}>
              {teams.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </Select>
          )}
          <Select label="GPU type" name="gpuType" error={fields.gpuType}>
            {gpuTypes.map((gpuType) => (
              <option key={gpuType}>{gpuType}</option>
            ))}
          </Select>
          <Field
            label="Amount"
            name="amount"
            {...amount}
            defaultValue={0.5}
            suffix="GPUs"
            hint="All of it together"
            error={fields.milli}
          />
          <Field
            label="In leases of"
            name="unit"
            {...amount}
            max={1}
            defaultValue={0.5}
            suffix="GPUs"
            hint="What one person attaches"
            error={fields.unitMilli}
          />
          <Field label="From (UTC)" name="startsAt" type="datetime-local" required error={fields.startsAt} />
          <Field label="To (UTC)" name="endsAt" type="datetime-local" required error={fields.endsAt} />
        </div>
        <Field label="What for" name="note" maxLength={200} error={fields.note} />
        <Packing proof={effects} gpuType="" />
        {effects?.refusal === null && (
          <section aria-label="Whom it displaces" className="figures rounded-md bg-sunken px-3 py-2 text-sm">
            {effects.displaced.length === 0 ? (
              <p>Nobody who holds a GPU now loses it for this.</p>
            ) : (
              <>
                <h3 className="font-medium">When the team takes all of it, these are taken back, with notice</h3>
                <ul className="mt-0.5 list-disc pl-4 text-ink-2">
                  {effects.displaced.map(({ who, teamName, milli }) => (
                    <li key={`${teamName} ${who} ${milli}`}>
                      {formatAmount(milli)} of {who} ({teamName}), if it still runs then
                    </li>
                  ))}
                </ul>
              </>
            )}
          </section>
        )}
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Reserve" saving="Reserving" />
      </form>
    </Dialog>
  );
}
