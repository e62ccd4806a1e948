import { joinByInviteInput, joinByInviteOutput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { joinByInvite } from "#server/services/user/join-by-invite.ts";

export const POST = route(
  {
    method: "POST",
    path: "/invitations/join",
    summary: "Join the team of an invitation to your own e-mail",
    action: "user.join-by-invite",
    input: joinByInviteInput,
    output: joinByInviteOutput,
  },
  (ctx, input) => joinByInvite(ctx, input),
);
