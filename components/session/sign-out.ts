/** Ends this browser's session and goes to the sign-in page. What does that is loaded then: every page would carry it. */
export async function signOut(): Promise<void> {
  const { signOut: leave } = await import("next-auth/react");
  await leave({ callbackUrl: "/sign-in" });
}
