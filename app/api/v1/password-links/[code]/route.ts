import { passwordLinkView, readPasswordLinkInput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { readPasswordLink } from "#server/services/user/read-password-link.ts";

export const GET = route(
  {
    method: "GET",
    path: "/password-links/{code}",
    summary: "Whose password a link is for, without using it",
    action: "user.redeem-password-link",
    input: readPasswordLinkInput,
    output: passwordLinkView,
  },
  (ctx, input) => readPasswordLink(ctx, input),
);
