/** Failures between the portal and the identity provider, explained for admins and without secrets. */

export type ProviderFailure = {
  code: "clock" | "expired" | "client" | "redirect" | "issuer" | "unreachable" | "refused" | "restart" | "unknown";
  /** What is wrong, then what to do. */
  reason: string;
  /** What the library or the provider says, bounded and without values that could be secrets. */
  said: string;
};

const kinds: [code: ProviderFailure["code"], shape: RegExp, reason: string][] = [
  [
    "clock",
    /not active yet|in the future/i,
    "The token is not valid yet: the provider's clock is ahead of the portal's by more than 2 min. Synchronize both clocks.",
  ],
  [
    "expired",
    /expired/i,
    "The token is no longer valid: the provider's clock is behind the portal's. Synchronize both clocks.",
  ],
  [
    "client",
    /invalid_client|unauthorized_client|client authentication failed/i,
    "The provider refuses the client. Check SLUICE_OIDC_CLIENT_ID and SLUICE_OIDC_CLIENT_SECRET.",
  ],
  [
    "redirect",
    /redirect_uri/i,
    "The provider does not know the redirect URI. Register <portal>/api/auth/callback/oidc there.",
  ],
  [
    "issuer",
    /unexpected iss|iss mismatch|issuer/i,
    "The provider names a different issuer. Set SLUICE_OIDC_ISSUER to the issuer in its discovery document.",
  ],
  [
    "restart",
    /cookie was missing|state|nonce|pkce|code_verifier|invalid_grant/i,
    "The sign-in took too long, or came back in another browser. Start again on the sign-in page.",
  ],
  [
    "refused",
    /access_denied|consent|login_required|interaction_required|invalid_scope/i,
    "The provider refuses the person or the request. Look up the sign-in in the provider's own log.",
  ],
  [
    "unreachable",
    /ECONN|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT|timed? ?out|socket|certificate|self[- ]signed|expected 200 OK|too large/i,
    "The portal gets no valid answer from the provider. Check SLUICE_OIDC_ISSUER, the network and the certificate authorities that the portal trusts.",
  ],
];

/** Longest text of the library or the provider that is kept. */
const MAX_SAID = 200;

export function providerFailure(error: unknown): ProviderFailure {
  const said = withoutSecrets(messageOf(error));
  const [code, , reason] = kinds.find(([, shape]) => shape.test(said)) ?? [
    "unknown" as const,
    undefined,
    "Signing in at the provider failed. The provider's own log may say more.",
  ];
  return { code, reason, said };
}

/** next-auth passes an error itself or `{ error }`, with the provider's description as `error_description`. */
function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  if (typeof thrown !== "object" || thrown === null) return "";
  const { error, error_description: description } = thrown as { error?: unknown; error_description?: unknown };
  const described = typeof description === "string" ? ` (${description})` : "";
  return `${error instanceof Error ? error.message : ""}${described}`;
}

/** Expected and given values are states, codes and parts of tokens; so is every long word. */
function withoutSecrets(message: string): string {
  return message
    .slice(0, 2000)
    .replace(/\p{C}/gu, " ")
    .replace(/,? ?\b(expected|got)[: ].*$/i, (rest) => (/200 OK/.test(rest) ? rest : ""))
    .replace(/[\w+/=.~-]{24,}/g, "[hidden]")
    .slice(0, MAX_SAID);
}
