"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Button } from "#components/ui/button.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { TeamView } from "#server/contracts/team.ts";

/** Makes a team and goes to its page, where people and quotas are added. */
export function NewTeam() {
  const router = useRouter();
  const [open, setOpen] = useState(false);
  const { pending, error, fields, run } = useSubmit<TeamView>(["name"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = formText(new FormData(event.currentTarget), "name").trim();
    if (await run(() => api("POST", "/teams", { name }))) router.push(`/teams/${name}`);
  };
  return (
    <>
      <Button variant="primary" onClick={() => setOpen(true)}>
        New team
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title="New team"
        description="Add people and quotas on the team's page."
      >
        <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
          <Field
            label="Name"
            name="name"
            required
            maxLength={40}
            hint="Lower-case letters, digits and dashes, for example vision"
            error={fields.name}
          />
          <FormError>{error}</FormError>
          <div className="flex justify-end gap-2">
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button type="submit" variant="primary" pending={pending} pendingLabel="Making the team">
              Make team
            </Button>
          </div>
        </form>
      </Dialog>
    </>
  );
}
