"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Check, Field, FormError, Select } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { SetStopAnswer } from "#server/contracts/sharing.ts";
import type { TeamList } from "#server/contracts/team.ts";
import type { UserList } from "#server/contracts/user.ts";

type Named = { id: string; name: string };

/** Grants no new leases: to anybody, to a team or to a person, until it is lifted in the banner. */
export function StopLeases() {
  const router = useRouter();
  const toast = useToast();
  const [open, setOpen] = useState(false);
  const [teams, setTeams] = useState<Named[]>([]);
  const [people, setPeople] = useState<Named[]>([]);
  const { pending, error, fields, run, fail } = useSubmit<SetStopAnswer>(["reason", "subjectId"]);
  /** Everybody can be named, so who there is comes only when it is asked for. */
  const begin = async () => {
    setOpen(true);
    const [named, users] = await Promise.all([api<TeamList>("GET", "/teams"), api<UserList>("GET", "/users")]);
    if (named.ok) setTeams(named.data.teams);
    else fail(named.error.message);
    if (users.ok) setPeople(users.data.users.filter(({ disabled }) => !disabled));
    else fail(users.error.message);
  };
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [scope = "all", subjectId] = formText(form, "whom").split(" ");
    const stop = { scope, reason: formText(form, "reason"), endLeases: form.has("endLeases") };
    const set = await run(() => api("POST", "/stops", subjectId === undefined ? stop : { ...stop, subjectId }));
    if (!set) return;
    setOpen(false);
    toast(`No new leases are granted${set.endedLeases > 0 ? `; ${plural(set.endedLeases, "lease")} ended` : ""}.`);
    router.refresh();
  };
  return (
    <>
      <Button onClick={() => void begin()}>Stop new leases</Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title="Stop new leases"
        description="No new leases until you lift it. Running leases continue, and waiting requests keep their place."
      >
        <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
          <Select label="For whom" name="whom" error={fields.subjectId}>
            <option value="all">Everybody</option>
            <optgroup label="Teams">
              {teams.map(({ id, name }) => (
                <option key={id} value={`team ${id}`}>
                  Team {name}
                </option>
              ))}
            </optgroup>
            <optgroup label="People">
              {people.map(({ id, name }) => (
                <option key={id} value={`user ${id}`}>
                  {name}
                </option>
              ))}
            </optgroup>
          </Select>
          <Field
            label="Why"
            name="reason"
            required
            maxLength={200}
            hint="Shown on every page to the people it stops"
            error={fields.reason}
          />
          <Check
            label="End what they hold, too"
            name="endLeases"
            hint="Notebooks live on, and what is in GPU memory is kept where their GPU servers stay in service."
          />
          <FormError>{error}</FormError>
          <div className="flex justify-end gap-2">
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button type="submit" variant="danger" pending={pending} pendingLabel="Stopping">
              Stop new leases
            </Button>
          </div>
        </form>
      </Dialog>
    </>
  );
}
