import { listNoticesInput, noticePage } from "#server/contracts/notice.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/notice/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/notices",
    summary: "What you were told, the newest first, a page at a time",
    action: "notice.list",
    input: listNoticesInput,
    output: noticePage,
  },
  (ctx, input) => list(ctx, input),
);
