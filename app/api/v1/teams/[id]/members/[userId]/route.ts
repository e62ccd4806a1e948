import { teamId, userId } from "#server/contracts/common.ts";
import { removeMemberInput, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { removeMember } from "#server/services/team/remove-member.ts";

const input = removeMemberInput.omit({ teamId: true }).extend({ id: teamId, userId });

export const DELETE = route(
  {
    method: "DELETE",
    path: "/teams/{id}/members/{userId}",
    summary: "Take somebody out of a team",
    action: "team.remove-member",
    input,
    output: teamView,
  },
  (ctx, { id, userId }) => removeMember(ctx, { teamId: id, userId }),
);
