import { redeemPasswordLinkInput, redeemPasswordLinkOutput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { redeemPasswordLink } from "#server/services/user/redeem-password-link.ts";

export const POST = route(
  {
    method: "POST",
    path: "/password-links/redeem",
    summary: "Choose a new password by a link; browser sessions end everywhere",
    action: "user.redeem-password-link",
    input: redeemPasswordLinkInput,
    output: redeemPasswordLinkOutput,
  },
  (ctx, input) => redeemPasswordLink(ctx, input),
);
