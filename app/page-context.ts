/** What every server-rendered page starts with: who asks, and how refusals become pages. */
import { notFound, redirect } from "next/navigation";
import { renderedAt } from "#components/live/rendered-at.ts";
import { getContext } from "#server/auth/get-principal.ts";
import type { UserPrincipal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import { SluiceError } from "#server/errors.ts";
import { UnknownPlace } from "#server/page-of.ts";

export type PageContext = Context & { principal: UserPrincipal };

/** The context of whoever asks, signed in or not. */
export async function anyContext(): Promise<Context> {
  renderedAt();
  return await getContext();
}

/** The context of a signed-in person; everybody else is sent to sign in. */
export async function pageContext(): Promise<PageContext> {
  const ctx = await anyContext();
  if (ctx.principal.kind !== "user") redirect("/sign-in");
  return { ...ctx, principal: ctx.principal };
}

/** Reads a page of a list. Falls back to the first page when the row named by `after` no longer exists. */
export async function loadFrom<A extends string, T>(
  after: A | undefined,
  read: (after: A | undefined) => Promise<T> | T,
): Promise<T> {
  return await load(async () => {
    try {
      return await read(after);
    } catch (error) {
      if (!(error instanceof UnknownPlace)) throw error;
      return await read(undefined);
    }
  });
}

/**
 * Reads for a page. What does not exist and what one may not see look alike, so that a page gives nothing away;
 * any other error goes to the error page.
 */
export async function load<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    if (error.code === "unauthenticated") redirect("/sign-in");
    if (error.code === "not-found" || error.code === "forbidden" || error.code === "invalid") notFound();
    throw error;
  }
}
