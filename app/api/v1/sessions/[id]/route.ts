import { z } from "zod";
import { nothing, sessionId } from "#server/contracts/common.ts";
import { route } from "#server/http/route.ts";
import { end } from "#server/services/session/end.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/sessions/{id}",
    summary: "Sign out of one of your browser sessions; what it opened is closed",
    action: "session.end",
    input: z.strictObject({ id: sessionId }),
    output: nothing,
  },
  (ctx, { id }) => end(ctx, { sessionId: id }),
);
