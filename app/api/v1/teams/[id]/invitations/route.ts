import { teamInput } from "#server/contracts/team.ts";
import { invitationList } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { listInvitations } from "#server/services/user/list-invitations.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams/{id}/invitations",
    summary: "Invitations into a team that wait to be accepted",
    action: "user.invite",
    input: teamInput,
    output: invitationList,
  },
  (ctx, { id }) => listInvitations(ctx, { teamId: id }),
);
