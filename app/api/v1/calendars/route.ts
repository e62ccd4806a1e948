import { nothing } from "#server/contracts/common.ts";
import { calendarList } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { list } from "#server/services/calendar/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/calendars",
    summary: "The calendars of the GPU types, and of the quotas of one's teams; for an admin of all",
    action: "calendar.list",
    input: nothing,
    output: calendarList,
  },
  (ctx) => list(ctx),
);
