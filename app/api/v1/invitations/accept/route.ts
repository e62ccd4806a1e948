import { acceptInviteInput, acceptInviteOutput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { acceptInvite } from "#server/services/user/accept-invite.ts";

export const POST = route(
  {
    method: "POST",
    path: "/invitations/accept",
    summary: "Make the account that an invitation is for",
    action: "user.accept-invite",
    input: acceptInviteInput,
    output: acceptInviteOutput,
    status: 201,
  },
  (ctx, input) => acceptInvite(ctx, input),
);
