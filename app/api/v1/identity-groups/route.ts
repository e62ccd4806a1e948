import { nothing } from "#server/contracts/common.ts";
import { addIdentityGroupInput, identityGroupList } from "#server/contracts/identity-group.ts";
import { route } from "#server/http/route.ts";
import { add } from "#server/services/identity-group/add.ts";
import { list } from "#server/services/identity-group/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/identity-groups",
    summary: "What groups of the identity provider give",
    action: "identity-group.list",
    input: nothing,
    output: identityGroupList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/identity-groups",
    summary: "Let a group of the identity provider give a role in a team, or an admin's rights",
    action: "identity-group.add",
    input: addIdentityGroupInput,
    output: identityGroupList,
    status: 201,
  },
  (ctx, input) => add(ctx, input),
);
