import { auditList, listAuditInput } from "#server/contracts/audit.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/audit/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/audit",
    summary: "Who did what, newest first",
    action: "audit.list",
    input: listAuditInput,
    output: auditList,
  },
  (ctx, input) => list(ctx, input),
);
