/** For tests: a real identity provider, and a browser that signs in there and at the portal. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

/** As whom the portal asks the provider. */
export const CLIENT_ID = "sluice";
export const CLIENT_SECRET = "secret-of-the-client";

/** What the provider says of whoever signs in there, by the name typed into its form. */
export type Accounts = Map<
  string,
  {
    email?: string;
    /** Providers also leave it out, or write the word. */
    email_verified?: boolean | string;
    name?: string | null;
    groups?: string[] | string;
    /** From when on the ID token is valid, in seconds since 1970. */
    nbf?: number;
  }
>;

/** Cookies, and the forms that a person fills in to sign in. */
export class Browser {
  readonly #origin: string;
  readonly cookies = new Map<string, string>();
  readonly attributes = new Map<string, string>();

  /** `origin`: the portal's. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  cookieHeader(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  async request(url: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(new URL(url, this.#origin), {
      ...init,
      redirect: "manual",
      headers: { ...init.headers, cookie: this.cookieHeader() },
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = "", ...rest] = line.split(";");
      const name = pair.slice(0, pair.indexOf("="));
      const value = pair.slice(name.length + 1);
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
      this.attributes.set(name, rest.join(";"));
    }
    return response;
  }

  get(url: string): Promise<Response> {
    return this.request(url);
  }

  post(url: string, form: Record<string, string>): Promise<Response> {
    return this.request(url, { method: "POST", body: new URLSearchParams(form) });
  }

  async csrfToken(): Promise<string> {
    return ((await (await this.get("/api/auth/csrf")).json()) as { csrfToken: string }).csrfToken;
  }

  async signIn(email: string, password: string): Promise<number> {
    const csrfToken = await this.csrfToken();
    return (await this.post("/api/auth/callback/credentials", { email, password, csrfToken, json: "true" })).status;
  }

  /** Goes through the provider's forms as `login`; returns the address at which it ends. */
  async signInWithOidc(login: string): Promise<string> {
    const csrfToken = await this.csrfToken();
    let response = await this.post("/api/auth/signin/oidc", { csrfToken, callbackUrl: this.#origin, json: "true" });
    let url = ((await response.json()) as { url: string }).url;
    for (let step = 0; step < 12; step++) {
      response = await this.get(url);
      const next = response.headers.get("location");
      if (next !== null) {
        url = new URL(next, url).href;
        if (url === `${this.#origin}` || url === `${this.#origin}/` || url.includes("error=")) return url;
        continue;
      }
      const page = await response.text();
      const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
      if (action === undefined) return url;
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? "login";
      response = await this.post(new URL(action, url).href, { prompt, login, password: "any" });
      url = new URL(response.headers.get("location") ?? url, url).href;
    }
    throw new Error(`The sign-in did not end; last at ${url}`);
  }
}

/** A real identity provider, whose forms believe every password. `address`: where it listens, without it on loopback. */
export async function startProvider({
  redirectUri,
  accounts,
  thin = false,
  ...at
}: {
  redirectUri: string;
  accounts: Accounts;
  /** The ID token has the subject only; the UserInfo endpoint has the other claims. */
  thin?: boolean;
} & Place): Promise<{ server: Server; origin: string }> {
  const handlers: { handle?: (request: IncomingMessage, response: ServerResponse) => void } = {};
  const started = await listen((request, response) => handlers.handle?.(request, response), at);
  const provider = new Provider(started.origin, {
    clients: [{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [redirectUri] }],
    claims: { openid: ["sub", "nbf"], email: ["email", "email_verified"], profile: ["name", "groups"] },
    conformIdTokenClaims: thin,
    cookies: { keys: ["for-this-test"] },
    findAccount: (_ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: id, ...accounts.get(id) }),
    }),
  });
  handlers.handle = provider.callback();
  return started;
}

/** Where something is served; `certificate`: by TLS (PEM). */
type Place = { address?: string; certificate?: { key: string; cert: string } };

/** Serves on a free port. */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  { address, certificate }: Place = {},
): Promise<{ server: Server; origin: string }> {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    Promise.resolve(handler(request, response)).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  };
  const server = certificate === undefined ? createServer(answer) : createSecureServer(certificate, answer);
  await new Promise<void>((resolve) => server.listen(0, address ?? "127.0.0.1", resolve));
  return {
    server,
    origin: `${certificate === undefined ? "http" : "https"}://${address ?? "localhost"}:${(server.address() as AddressInfo).port}`,
  };
}
