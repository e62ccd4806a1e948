import { encodeSession, setSessionCookie } from "#server/auth/session-cookie.ts";
import { nothing } from "#server/contracts/common.ts";
import { enterSampleInput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { enterSample } from "#server/services/user/enter-sample.ts";

export const GET = route(
  {
    method: "GET",
    path: "/users/sample/enter",
    summary: "Sign this window in as the sample user with the admin's one-time code",
    action: "user.enter-sample",
    input: enterSampleInput,
    output: nothing,
    status: 303,
  },
  async (ctx, { code }) => {
    const userAgent = ctx.request.headers.get("user-agent");
    const session = await enterSample(ctx, { code, userAgent });
    const cookie = setSessionCookie(await encodeSession(session), session.expiresAt);
    return new Response(null, {
      status: 303,
      headers: { location: "/workspaces", "set-cookie": cookie, "referrer-policy": "no-referrer" },
    });
  },
);
