import { teamId } from "#server/contracts/common.ts";
import { addMemberInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { addMember } from "#server/services/team/add-member.ts";

const input = addMemberInput.omit({ teamId: true }).extend({ id: teamId });

export const POST = route(
  {
    method: "POST",
    path: "/teams/{id}/members",
    summary: "Add somebody to a team, or change the role",
    action: "team.add-member",
    input,
    output: teamView,
  },
  (ctx, { id, ...member }) => addMember(ctx, { teamId: id, ...member }),
);
