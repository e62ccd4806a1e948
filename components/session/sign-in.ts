import { signIn } from "next-auth/react";

/** Signs in with a local account; the sentence for the form when it was refused. */
export async function signInLocally(email: string, password: string): Promise<string | undefined> {
  try {
    const answer = await signIn("credentials", { email, password, redirect: false });
    if (answer?.ok && !answer.error) return undefined;
    if (answer?.error === "TooManyAttempts") return "Too many attempts. Wait a few minutes, then try again.";
    if (answer && (answer.error === "Unavailable" || answer.status >= 500))
      return "The portal cannot check passwords just now. Try again in a few seconds.";
    return "Wrong e-mail or password.";
  } catch {
    return "The portal did not answer. Check the connection, then try again.";
  }
}

/** Goes to the organisation's own sign-in page. */
export async function signInWithProvider(callbackUrl: string): Promise<void> {
  await signIn("oidc", { callbackUrl });
}

/** Goes on as the person just signed in. A full load: everything rendered before belonged to nobody. */
export function enterPortal(path: string): void {
  window.location.assign(path);
}
