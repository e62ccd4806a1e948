"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { type ApiError, api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Button } from "#components/ui/button.tsx";
import { ShownOnce } from "#components/ui/copy.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { InviteOutput } from "#server/contracts/user.ts";

/** The invited person has an account already. `deactivated`: the id of a deactivated account. */
type Known = { email: string; teamId: string; role: string; deactivated?: string };

/** The account that blocks an invitation, if the reader may add or reactivate it. */
function accountOf({ code, detail }: ApiError, asked: Known): Known | undefined {
  if (code !== "conflict" || typeof detail !== "object" || detail === null) return undefined;
  if ("deactivated" in detail && typeof detail.deactivated === "string")
    return { ...asked, deactivated: detail.deactivated };
  return "mayAdd" in detail && detail.mayAdd === true ? asked : undefined;
}

/** Invites a person into a team; the link is shown once, to be sent by whatever way one trusts. */
export default function InvitationForm({
  teams,
  onClose,
}: {
  teams: { id: string; name: string }[];
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const zone = useTimeZone();
  const [made, setMade] = useState<InviteOutput & { email: string }>();
  // Whoever has an account needs no link.
  const [known, setKnown] = useState<Known>();
  const { pending, error, fields, run, fail } = useSubmit<InviteOutput>(["email", "teamId", "role"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const asked = { email: formText(form, "email"), teamId: formText(form, "teamId"), role: formText(form, "role") };
    const link = await run(async () => {
      const answer = await api<InviteOutput>("POST", "/invitations", asked);
      setKnown(answer.ok ? undefined : accountOf(answer.error, asked));
      return answer;
    });
    if (!link) return;
    setMade({ ...link, email: asked.email });
    router.refresh();
  };
  const nameOf = (teamId: string) => teams.find(({ id }) => id === teamId)?.name ?? "the team";
  const reactivate = async (id: string, email: string) => {
    const result = await api("POST", `/users/${id}/reactivate`);
    if (!result.ok) {
      fail(result.error.message);
      return;
    }
    toast(`${email} may sign in again.`);
    router.refresh();
    onClose();
  };
  const add = async ({ teamId, email, role }: Known) => {
    const member = { email, role };
    const result = await api("POST", `/teams/${teamId}/members`, member);
    if (!result.ok) {
      fail(result.error.message);
      return;
    }
    toast(`${member.email} is in ${nameOf(teamId)} now.`);
    router.refresh();
    onClose();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={made ? "Invitation link" : "Invite a person"}
      description={
        made
          ? `Send it to ${made.email}. It works once, until ${formatExact(made.expiresAt, zone)}, and is not shown again.`
          : "They choose their own name and password behind the link."
      }
    >
      {made ? (
        <ShownOnce text={made.link} label="Invitation link" onDone={onClose} />
      ) : (
        <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
          <Field label="E-mail" name="email" type="email" required error={fields.email} />
          <div className="grid grid-cols-2 gap-4">
            <Select label="Team" name="teamId" error={fields.teamId}>
              {teams.map((team) => (
                <option key={team.id} value={team.id}>
                  {team.name}
                </option>
              ))}
            </Select>
            <Select label="Role" name="role" defaultValue="member" error={fields.role}>
              <option value="member">member</option>
              <option value="lead">team lead</option>
            </Select>
          </div>
          {known?.deactivated && (
            <Button onClick={() => void reactivate(known.deactivated ?? "", known.email)}>
              Reactivate {known.email}
            </Button>
          )}
          {known && known.deactivated === undefined && (
            <Button onClick={() => void add(known)}>
              Add {known.email} to {nameOf(known.teamId)}
            </Button>
          )}
          <FormFooter
            error={error}
            pending={pending}
            onCancel={onClose}
            save="Make the link"
            saving="Making the link"
          />
        </form>
      )}
    </Dialog>
  );
}
