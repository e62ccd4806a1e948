/** The gateway's cookie. Host-only, unreadable to scripts; over HTTPS with the prefix that no other host can set. */

export function cookieName(secure: boolean): string {
  return secure ? "__Host-sluice-workspace" : "sluice-workspace";
}

/** All values of our cookie: another host of the same site may have laid one of the same name beside ours. */
export function secretsFrom(header: string | undefined, secure: boolean): string[] {
  const name = cookieName(secure);
  return (header ?? "")
    .split(";")
    .map((part) => part.trim().split("="))
    .flatMap(([key, value]) =>
      key === name && value !== undefined && /^[A-Za-z0-9_-]{43}$/.test(value) ? [value] : [],
    )
    .slice(0, 5);
}

export function setCookie(secret: string, secure: boolean): string {
  return `${cookieName(secure)}=${secret}; Path=/; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
}
