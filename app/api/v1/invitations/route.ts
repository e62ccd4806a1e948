import { inviteInput, inviteOutput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { invite } from "#server/services/user/invite.ts";

export const POST = route(
  {
    method: "POST",
    path: "/invitations",
    summary: "Make a link that invites somebody into a team",
    action: "user.invite",
    input: inviteInput,
    output: inviteOutput,
    status: 201,
  },
  (ctx, input) => invite(ctx, input),
);
