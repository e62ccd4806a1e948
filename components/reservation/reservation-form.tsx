"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useEffect, useState } from "react";
import { api } from "#components/api.ts";
import { Packing } from "#components/calendar/packing.tsx";
import { formMilli, formText } from "#components/form-text.ts";
import { formatAmount } from "#components/format.ts";
import { TimeField } from "#components/time-zone/time-field.tsx";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { GpuField } from "#components/ui/gpu-field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { usePreview } from "#components/use-preview.ts";
import { useSubmit } from "#components/use-submit.ts";
import type { ReservationEffects, ReservationView } from "#server/contracts/sharing.ts";
import type { TeamView } from "#server/contracts/team.ts";
import { instantIn } from "#server/contracts/time-zone.ts";

/** What may be reserved: a team, and the GPU types that it has a quota for. */
export type Reservable = { id: string; name: string; gpuTypes: string[] };

const FIELDS = ["teamId", "userId", "gpuType", "milli", "unitMilli", "startsAt", "endsAt", "note"];

/** The fields as the API takes them; times are typed in the person's zone. */
function readReservation(form: FormData, teams: Reservable[], zone: string) {
  const instant = (name: string) => instantIn(zone, formText(form, name));
  const [only] = teams;
  const userId = formText(form, "userId");
  return {
    teamId: teams.length === 1 ? only?.id : formText(form, "teamId"),
    ...(userId === "" ? {} : { userId }),
    gpuType: formText(form, "gpuType"),
    milli: formMilli(form, "amount"),
    unitMilli: formMilli(form, "unit"),
    startsAt: instant("startsAt"),
    endsAt: instant("endsAt"),
    note: formText(form, "note"),
  };
}

/** Reserves a part of the pool for a team, or one of its people, and a time; whom that displaces stands below the fields before it is made. */
export default function ReservationForm({ teams, onClose }: { teams: Reservable[]; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const { pending, error, fields, run } = useSubmit<ReservationView>(FIELDS);
  const { preview: effects, ask } = usePreview<ReservationEffects>();
  const [teamId, setTeamId] = useState(teams[0]?.id);
  const [userId, setUserId] = useState("");
  const members = useMembers(teamId);
  const person = members.find((member) => member.userId === userId);
  const gpuTypes = [...new Set(teams.flatMap((team) => team.gpuTypes))].sort();
  const askEffects = (form: HTMLFormElement) => {
    ask(() => {
      if (!form.checkValidity()) return undefined;
      return api("POST", "/reservations/preview", readReservation(new FormData(form), teams, zone));
    });
  };
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const input = readReservation(new FormData(event.currentTarget), teams, zone);
    if (!(await run(() => api("POST", "/reservations", input)))) return;
    onClose();
    toast("Reserved. It is on top of the team's quota while it lasts.");
    router.refresh();
  };
  const [only] = teams;
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={teams.length === 1 ? `Reserve for ${only?.name}` : "Reserve"}
      description="On top of the team's guarantee, for a time: a class, a deadline. It ends alone."
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => void submit(event)}
        onInput={(event) => askEffects(event.currentTarget)}
      >
        <div className="grid grid-cols-2 gap-4">
          {teams.length > 1 && (
            <Select
              label="Team"
              name="teamId"
              value={teamId}
              onChange={(event) => {
                setTeamId(event.currentTarget.value);
                setUserId("");
              }}
              error={fields.teamId}
            >
              {teams.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </Select>
          )}
          <Select
            label="For"
            name="userId"
            value={userId}
            onChange={(event) => setUserId(event.currentTarget.value)}
            error={fields.userId}
          >
            <option value="">All of the team</option>
            {members.map(({ userId: id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </Select>
          <Select label="GPU type" name="gpuType" error={fields.gpuType}>
            {gpuTypes.map((gpuType) => (
              <option key={gpuType}>{gpuType}</option>
            ))}
          </Select>
          <GpuField
            label="Amount"
            name="amount"
            min={0.001}
            defaultValue={0.5}
            hint="All of it together"
            error={fields.milli}
          />
          <GpuField
            label="In leases of"
            name="unit"
            min={0.001}
            max={1}
            defaultValue={0.5}
            hint="What one person attaches"
            error={fields.unitMilli}
          />
          <TimeField label="From" name="startsAt" required error={fields.startsAt} />
          <TimeField label="To" name="endsAt" required error={fields.endsAt} />
        </div>
        <Field label="What for" name="note" maxLength={200} error={fields.note} />
        <Packing proof={effects} gpuType="" />
        {effects?.refusal === null && (
          <section aria-label="Whom it displaces" className="figures rounded-md bg-sunken px-3 py-2 text-sm">
            {person && <p>Nobody else of the team may use it, even while it lies idle.</p>}
            {effects.displaced.length === 0 ? (
              <p>Nobody who holds a GPU now loses it for this.</p>
            ) : (
              <>
                <h3 className="font-medium">
                  {person ? "For this" : "When the team takes all of it,"} these are taken back, with notice
                </h3>
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

/** The people of a team by name; nobody until they are read. */
function useMembers(teamId: string | undefined): TeamView["members"] {
  const [team, setTeam] = useState<TeamView>();
  useEffect(() => {
    let current = true;
    void api<TeamView>("GET", `/teams/${teamId}`).then((answer) => {
      if (current && answer.ok) setTeam(answer.data);
    });
    return () => {
      current = false;
    };
  }, [teamId]);
  return team !== undefined && team.id === teamId ? team.members : [];
}
