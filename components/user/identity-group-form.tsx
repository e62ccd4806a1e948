"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { IdentityGroupList } from "#server/contracts/identity-group.ts";

/** Which group of the identity provider, and what it gives. */
export default function IdentityGroupForm({
  teams,
  onClose,
}: {
  teams: { id: string; name: string }[];
  onClose: () => void;
}) {
  const router = useRouter();
  const { pending, error, fields, run } = useSubmit<IdentityGroupList>(["name", "role", "teamId"]);
  const [role, setRole] = useState("member");
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const team = role === "admin" ? {} : { teamId: formText(form, "teamId") };
    const done = await run(() => api("POST", "/identity-groups", { name: formText(form, "name"), role, ...team }));
    if (!done) return;
    onClose();
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title="Add a group"
      description="Its members get these rights at their next sign-in through the identity provider."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field
          label="Group"
          name="name"
          required
          maxLength={256}
          autoComplete="off"
          spellCheck={false}
          hint="Exactly as the provider writes it"
          error={fields.name}
        />
        <div className="grid grid-cols-2 gap-4">
          <Select
            label="Gives"
            name="role"
            value={role}
            onChange={(event) => setRole(event.currentTarget.value)}
            error={fields.role}
          >
            <option value="member">member of a team</option>
            <option value="lead">team lead</option>
            <option value="admin">admin</option>
          </Select>
          {role !== "admin" && (
            <Select label="Team" name="teamId" error={fields.teamId}>
              {teams.map((team) => (
                <option key={team.id} value={team.id}>
                  {team.name}
                </option>
              ))}
            </Select>
          )}
        </div>
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Add group" saving="Adding" />
      </form>
    </Dialog>
  );
}
