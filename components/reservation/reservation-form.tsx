"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useEffect, useState } from "react";
import { api } from "#components/api.ts";
import { Packing } from "#components/calendar/packing.tsx";
import { formText } from "#components/form-text.ts";
import { TimeField } from "#components/time-zone/time-field.tsx";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { usePreview } from "#components/use-preview.ts";
import { useSubmit } from "#components/use-submit.ts";
import type { CreatedReservation, ReservationEffects } from "#server/contracts/sharing.ts";
import type { TeamView } from "#server/contracts/team.ts";
import { instantIn } from "#server/contracts/time-zone.ts";
import { Effects } from "./effects.tsx";

/** What may be reserved: a team, and the GPU types that it has a quota for. */
export type Reservable = { id: string; name: string; gpuTypes: string[] };

const FIELDS = ["userId", "gpuType", "amount", "unit", "startsAt", "endsAt", "repeat.until", "note"];

/** The fields as the API takes them; times are typed in the person's zone. */
function readReservation(form: FormData, teams: Reservable[], zone: string) {
  const instant = (name: string) => instantIn(zone, formText(form, name));
  const [only] = teams;
  const userId = formText(form, "userId");
  const until = formText(form, "until");
  return {
    teamId: teams.length === 1 ? only?.id : formText(form, "teamId"),
    ...(userId === "" ? {} : { userId }),
    gpuType: formText(form, "gpuType"),
    amount: formText(form, "amount"),
    unit: formText(form, "unit"),
    startsAt: instant("startsAt"),
    endsAt: instant("endsAt"),
    ...(until === "" ? {} : { repeat: { until, timeZone: zone } }),
    note: formText(form, "note"),
  };
}

/** Reserves a part of the pool for a team, or one of its people, and a time; whom that displaces stands below the fields before it is made. */
export default function ReservationForm({ teams, onClose }: { teams: Reservable[]; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const { pending, error, fields, run } = useSubmit<CreatedReservation>(
    teams.length > 1 ? ["teamId", ...FIELDS] : FIELDS,
  );
  const { preview: effects, ask } = usePreview<ReservationEffects>();
  const [teamId, setTeamId] = useState(teams[0]?.id);
  const [userId, setUserId] = useState("");
  const [weekly, setWeekly] = useState(false);
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
    const made = await run(() => api("POST", "/reservations", input));
    if (!made) return;
    onClose();
    const count = 1 + made.following.length;
    toast(
      count === 1
        ? "Reserved. It is on top of the team's quota while it lasts."
        : `${count} reservations are made, one a week. Each is on top of the team's quota while it lasts.`,
    );
    router.refresh();
  };
  const [only] = teams;
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={teams.length === 1 ? `Reserve for ${only?.name}` : "Reserve"}
      description="On top of the team's guarantee, for a time: a class, a deadline. It starts and ends automatically."
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
          <Field
            label="Amount"
            name="amount"
            autoComplete="off"
            required
            defaultValue="0.5"
            hint="All of it together: 2 (GPUs), or 160G (GPU memory)"
            error={fields.amount}
          />
          <Field
            label="In leases of"
            name="unit"
            autoComplete="off"
            required
            defaultValue="0.5"
            hint="What one person attaches: 0.5, or 40G"
            error={fields.unit}
          />
          <div className="col-span-2 grid gap-4 sm:grid-cols-2">
            <TimeField label="From" name="startsAt" required error={fields.startsAt} />
            <TimeField label="To" name="endsAt" required error={fields.endsAt} />
          </div>
          <Select
            label="Repeats"
            value={weekly ? "weekly" : "once"}
            onChange={(event) => setWeekly(event.currentTarget.value === "weekly")}
          >
            <option value="once">Once</option>
            <option value="weekly">Every week</option>
          </Select>
          {weekly && (
            <Field
              label="Until"
              name="until"
              type="date"
              required
              hint="Last day on which it may start"
              error={fields["repeat.until"]}
            />
          )}
        </div>
        <Field label="What for" name="note" maxLength={200} error={fields.note} />
        <Packing proof={effects} gpuType="" />
        {effects?.refusal === null && <Effects effects={effects} forPerson={person !== undefined} zone={zone} />}
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
