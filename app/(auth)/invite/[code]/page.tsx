import { SignOutButton } from "#components/session/sign-out-button.tsx";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { AcceptInviteForm } from "#components/user/accept-invite-form.tsx";
import { JoinTeam } from "#components/user/join-team.tsx";
import type { Principal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import type { InviteView } from "#server/contracts/user.ts";
import { SluiceError } from "#server/errors.ts";
import { readInvite } from "#server/services/user/read-invite.ts";
import { anyContext } from "../../../page-context.ts";

export const metadata = { title: "Invitation" };

/** The page of an invitation: its e-mail and team, and the next step for this visitor. */
export default async function InvitePage({ params }: { params: Promise<{ code: string }> }) {
  const { code } = await params;
  const ctx = await anyContext();
  const invite = await readOrReason(ctx, code);
  if (typeof invite === "string") {
    return (
      <div>
        <h1 className="text-xl font-semibold tracking-tight">This invitation link is invalid or expired</h1>
        <p className="mt-1 text-ink-2">{invite}</p>
      </div>
    );
  }
  return (
    <>
      <div>
        <h1 className="text-xl font-semibold tracking-tight">Join team {invite.teamName}</h1>
        <p className="mt-1 text-ink-2">
          {invite.email} is invited as {invite.role === "lead" ? "a team lead" : "a member"}.{" "}
          {nextStep(ctx.principal, invite)}
        </p>
      </div>
      <Next code={code} invite={invite} principal={ctx.principal} />
    </>
  );
}

function nextStep(principal: Principal, { email, hasAccount }: InviteView): string {
  if (principal.kind !== "user") return hasAccount ? "Sign in to join." : "Choose a name and a password.";
  if (principal.email === email) return "You are signed in with this e-mail.";
  return `You are signed in as ${principal.email}. Sign out, then open this link again.`;
}

/** An existing account joins by itself. An invitation for another e-mail cannot be used. */
function Next({ code, invite, principal }: { code: string; invite: InviteView; principal: Principal }) {
  if (principal.kind === "user") {
    return principal.email === invite.email ? <JoinTeam code={code} teamName={invite.teamName} /> : <SignOutButton />;
  }
  if (!invite.hasAccount) return <AcceptInviteForm code={code} />;
  return (
    <ButtonLink href={`/sign-in?next=${encodeURIComponent(`/invite/${code}`)}`} variant="primary">
      Sign in
    </ButtonLink>
  );
}

/** The invitation, or the sentence why there is none. */
async function readOrReason(ctx: Context, code: string): Promise<InviteView | string> {
  try {
    return await readInvite(ctx, { code });
  } catch (error) {
    if (error instanceof SluiceError) return error.message.replace(/^code: /, "");
    throw error;
  }
}
