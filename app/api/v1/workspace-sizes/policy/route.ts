import { setSizePolicyInput, sizeList } from "#server/contracts/workspace-size.ts";
import { route } from "#server/http/route.ts";
import { setPolicy } from "#server/services/workspace-size/set-policy.ts";

export const PUT = route(
  {
    method: "PUT",
    path: "/workspace-sizes/policy",
    summary: "Set who may choose cores and memory freely where a team's policy says nothing, and how much",
    action: "workspace-size.edit",
    input: setSizePolicyInput,
    output: sizeList,
  },
  (ctx, input) => setPolicy(ctx, input),
);
