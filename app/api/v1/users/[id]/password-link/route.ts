import { passwordLink, userInput } from "#server/contracts/user.ts";
import { route } from "#server/http/route.ts";
import { createPasswordLink } from "#server/services/user/create-password-link.ts";

export const POST = route(
  {
    method: "POST",
    path: "/users/{id}/password-link",
    summary: "Make a link with which a person who forgot the password chooses a new one",
    action: "user.create-password-link",
    input: userInput,
    output: passwordLink,
    status: 201,
  },
  (ctx, input) => createPasswordLink(ctx, input),
);
