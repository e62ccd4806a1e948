import { AcceptInviteForm } from "#components/user/accept-invite-form.tsx";
import type { InviteView } from "#server/contracts/user.ts";
import { SluiceError } from "#server/errors.ts";
import { readInvite } from "#server/services/user/read-invite.ts";
import { anyContext } from "../../../page-context.ts";

export const metadata = { title: "Invitation" };

/** The page of an invitation: whom it is for, and the form that makes the account. */
export default async function InvitePage({ params }: { params: Promise<{ code: string }> }) {
  const { code } = await params;
  const invite = await readOrReason(code);
  if (typeof invite === "string") {
    return (
      <div>
        <h1 className="text-xl font-semibold tracking-tight">This invitation does not open</h1>
        <p className="mt-1 text-ink-2">{invite}</p>
      </div>
    );
  }
  return (
    <>
      <div>
        <h1 className="text-xl font-semibold tracking-tight">Join team {invite.teamName}</h1>
        <p className="mt-1 text-ink-2">
          {invite.email} is invited as {invite.role === "lead" ? "a team lead" : "a member"}. Choose a name and a
          password.
        </p>
      </div>
      <AcceptInviteForm code={code} />
    </>
  );
}

/** The invitation, or the sentence why there is none. */
async function readOrReason(code: string): Promise<InviteView | string> {
  try {
    return await readInvite(await anyContext(), { code });
  } catch (error) {
    if (error instanceof SluiceError) return error.message.replace(/^code: /, "");
    throw error;
  }
}
