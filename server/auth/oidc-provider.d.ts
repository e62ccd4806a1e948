/** The part of oidc-provider (which ships no types) that tests use. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export class Provider {
    constructor(
      issuer: string,
      configuration: {
        clients: { client_id: string; client_secret: string; redirect_uris: string[] }[];
        claims: Record<string, string[]>;
        conformIdTokenClaims: boolean;
        cookies: { keys: string[] };
        findAccount: (ctx: unknown, id: string) => { accountId: string; claims: () => { sub: string } };
      },
    );
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
  }
}
