/**
 * Where to go on this portal for an address that a link brought along: its path, or `otherwise` when it leads to
 * another site. A path that begins with two slashes is one that a browser reads as the name of a site.
 */
export function ownPath(wanted: string | undefined, portal: string, otherwise: string): string {
  if (!wanted) return otherwise;
  const origin = new URL(portal).origin;
  const url = URL.parse(wanted, origin);
  if (url === null || url.origin !== origin || /^[/\\]{2}/.test(url.pathname)) return otherwise;
  return `${url.pathname}${url.search}`;
}
