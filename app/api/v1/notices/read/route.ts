import { markNoticesReadInput, noticePage } from "#server/contracts/notice.ts";
import { route } from "#server/http/route.ts";
import { markRead } from "#server/services/notice/mark-read.ts";

export const POST = route(
  {
    method: "POST",
    path: "/notices/read",
    summary: "Mark notices as read: those named, or all of yours",
    action: "notice.mark-read",
    input: markNoticesReadInput,
    output: noticePage,
  },
  (ctx, input) => markRead(ctx, input),
);
