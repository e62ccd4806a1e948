import { z } from "zod";
import { invitationId, teamId } from "#server/contracts/common.ts";
import { invitationList } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { revokeInvitation } from "#server/services/user/revoke-invitation.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/teams/{id}/invitations/{invitationId}",
    summary: "End an invitation: its link opens nothing any more",
    action: "user.invite",
    input: z.strictObject({ id: teamId, invitationId }),
    output: invitationList,
  },
  (ctx, { id, invitationId }) => revokeInvitation(ctx, { teamId: id, id: invitationId }),
);
