import { nothing } from "#server/contracts/common.ts";
import { createTeamInput, teamList, teamView } from "#server/contracts/team.ts";
import { route } from "#server/http/route.ts";
import { create } from "#server/services/team/create.ts";
import { list } from "#server/services/team/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/teams",
    summary: "One's teams; for an admin all of them",
    action: "team.list",
    input: nothing,
    output: teamList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/teams",
    summary: "Make a team",
    action: "team.create",
    input: createTeamInput,
    output: teamView,
    status: 201,
  },
  (ctx, input) => create(ctx, input),
);
