import NextLink from "next/link";
import type { ComponentProps } from "react";

/**
 * A link to a page of the portal. Nothing is fetched before it is followed: every page is made for its reader at that
 * time, so what could be fetched ahead holds nothing of it, and a page with its list of pages has dozens of links.
 */
export function Link(props: Omit<ComponentProps<typeof NextLink>, "prefetch">) {
  return <NextLink prefetch={false} {...props} />;
}
