import { signOut as leave } from "next-auth/react";

/** Ends this browser's session and goes to the sign-in page. */
export async function signOut(): Promise<void> {
  await leave({ callbackUrl: "/sign-in" });
}
