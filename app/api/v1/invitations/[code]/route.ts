import { inviteView, readInviteInput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { readInvite } from "#server/services/user/read-invite.ts";

export const GET = route(
  {
    method: "GET",
    path: "/invitations/{code}",
    summary: "Whom an invitation is for, without using it",
    action: "user.accept-invite",
    input: readInviteInput,
    output: inviteView,
  },
  (ctx, input) => readInvite(ctx, input),
);
