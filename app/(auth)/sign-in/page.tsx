import { redirect } from "next/navigation";
import { SignInForm } from "#components/session/sign-in-form.tsx";
import { BootSteps } from "#components/setup/boot-steps.tsx";
import { env } from "#server/env.ts";
import { ownPath } from "#server/http/own-path.ts";
import { status } from "#server/services/setup/status.ts";
import { anyContext } from "../../page-context.ts";

export const metadata = { title: "Sign in" };

/** The way in; on a new installation it says where the set-up link is instead. */
export default async function SignInPage({
  searchParams,
}: {
  searchParams: Promise<Record<string, string | undefined>>;
}) {
  const ctx = await anyContext();
  const { next, callbackUrl, error, reference } = await searchParams;
  const target = afterSignIn(next ?? callbackUrl);
  if (ctx.principal.kind === "user") redirect(target);
  const setup = await status(ctx);
  if (!setup.done) {
    return (
      <>
        <div>
          <h1 className="text-xl font-semibold tracking-tight">Set up Sluice</h1>
          <p className="mt-1 text-ink-2">
            Nobody has an account yet. Open the set-up link that <code>npm start</code> printed in the terminal; it
            makes the first admin. When it is gone, stop and start again: each start prints a new one.
          </p>
        </div>
        <BootSteps steps={setup.steps} />
      </>
    );
  }
  const { SLUICE_OIDC_ISSUER, SLUICE_OIDC_NAME } = env();
  return (
    <>
      <h1 className="text-xl font-semibold tracking-tight">Sign in</h1>
      <SignInForm
        next={target}
        provider={SLUICE_OIDC_ISSUER ? SLUICE_OIDC_NAME : undefined}
        refused={error ? refusal(error, SLUICE_OIDC_NAME, reference) : undefined}
      />
    </>
  );
}

/** Where the person wanted to go, on this portal; never back to signing in. */
function afterSignIn(wanted: string | undefined): string {
  const path = ownPath(wanted, env().SLUICE_PORTAL_URL, "/workspaces");
  return path.startsWith("/sign-in") || path === "/" ? "/workspaces" : path;
}

function refusal(error: string, provider: string, reference = ""): string {
  if (error === "CredentialsSignin") return "Wrong e-mail or password.";
  if (error === "TooManyAttempts") return "Too many attempts. Wait a few minutes, then try again.";
  if (error === "Unavailable") return "The portal cannot sign anybody in just now. Try again in a few seconds.";
  const ask = /^[0-9a-f]{8}$/.test(reference) ? `give an admin the reference ${reference}` : "ask an admin";
  if (error === "AccessDenied")
    return `${provider} confirmed your identity, but you have no access here. To get in, ${ask}.`;
  return `Signing in with ${provider} failed. Try again, or ${ask}.`;
}
