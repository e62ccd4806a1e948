import { identityGroupList, removeIdentityGroupInput } from "#server/contracts/identity-group.ts";
import { route } from "#server/http/route.ts";
import { remove } from "#server/services/identity-group/remove.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/identity-groups/{id}",
    summary: "End what a group of the identity provider gives",
    action: "identity-group.remove",
    input: removeIdentityGroupInput,
    output: identityGroupList,
  },
  (ctx, input) => remove(ctx, input),
);
