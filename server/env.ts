/** The one reader of environment variables on the TypeScript side. */
import path from "node:path";
import { z } from "zod";
import { zoneName } from "#server/contracts/zone-name.ts";

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const address = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/(?<!\/)\/+$/, ""));
const url = (fallback: string) => address.default(fallback);
/** A URL without a path: pages and cookies of portal and gateway begin at `/`. */
const origin = (fallback: string) =>
  address
    .superRefine((value, found) => {
      const parsed = new URL(value);
      const below = `${parsed.pathname}${parsed.search}${parsed.hash}`;
      if (parsed.username !== "" || parsed.password !== "") found.addIssue("Leave out the user and the password.");
      if (below === "/") return;
      found.addIssue(
        `Sluice cannot be served below a path. Give it a host name of its own, and set ${parsed.origin} without "${below}".`,
      );
    })
    .default(fallback);

const listed = (value: string) =>
  value
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

/** A listening TCP socket that this process inherits: its port and its file descriptor. */
export type HeldSocket = { port: number; fd: number };

const heldSockets = z
  .string()
  .regex(/^(\d+=\d+(,\d+=\d+)*)?$/, "pairs of a port and a file descriptor, such as 3001=3,3003=4")
  .default("")
  .transform((value): HeldSocket[] =>
    listed(value).map((pair) => {
      const [held = 0, fd = 0] = pair.split("=").map(Number);
      return { port: held, fd };
    }),
  );

const settings = z.object({
  /** PostgreSQL; `npm start` sets it to the embedded server when nothing is given. */
  DATABASE_URL: z.string().min(1).optional(),
  SLUICE_STATE_DIR: z
    .string()
    .min(1)
    // Only known when it runs: a bundler must not follow it into the state of an installation.
    .default(() => path.join(/* turbopackIgnore: true */ process.cwd(), ".sluice"))
    .transform((value) => path.resolve(value)),
  SLUICE_PORTAL_URL: origin("http://localhost:3000"),
  SLUICE_PORTAL_PORT: port(3000),
  /** What workspaces and gpud dial. */
  SLUICE_BROKER_URL: url("http://127.0.0.1:3001"),
  SLUICE_BROKER_PORT: port(3001),
  /** Where the broker answers those who are no workspaces and no GPU servers: `/metrics`, and a cluster's API server. */
  SLUICE_BROKER_INTERNAL_PORT: port(3003),
  SLUICE_GATEWAY_PORT: port(3002),
  /** With both of these files (PEM) the broker speaks HTTPS itself. */
  SLUICE_BROKER_TLS_CERTIFICATE: z.string().min(1).optional(),
  SLUICE_BROKER_TLS_KEY: z.string().min(1).optional(),
  /** More of them for its internal port, for who asks there by a name that this certificate holds for. */
  SLUICE_BROKER_INTERNAL_TLS_CERTIFICATE: z.string().min(1).optional(),
  SLUICE_BROKER_INTERNAL_TLS_KEY: z.string().min(1).optional(),
  /** Where portal, broker and gateway listen: this machine alone, or `0.0.0.0` in a container behind what ends TLS. */
  SLUICE_LISTEN: z.union([z.ipv4(), z.ipv6()]).default("127.0.0.1"),
  /** Set by `npm start`: the sockets that it holds for this process, by port. */
  SLUICE_LISTEN_FDS: heldSockets,
  /** A workspace's hostname is `<id>.<SLUICE_GATEWAY_HOST>`. */
  SLUICE_GATEWAY_HOST: z
    .string()
    .regex(/^[a-z0-9.-]+$/)
    .default("localhost"),
  /**
   * How many proxies stand in front of the portal, each of which writes at the end of X-Forwarded-For whom it saw. 0: none,
   * a client is where its socket is from, and the header is not believed.
   */
  SLUICE_PROXY_HOPS: z.coerce.number().int().min(0).max(20).default(0),
  /** The same for proxies in front of the broker. */
  SLUICE_BROKER_PROXY_HOPS: z.coerce.number().int().min(0).max(20).default(0),
  /** Where browsers reach the gateway, without a workspace's label. */
  SLUICE_GATEWAY_URL: origin("http://localhost:3002"),
  /** Where the portal reaches the gateway to ask how it is, when that is not SLUICE_GATEWAY_PORT of the same machine. */
  SLUICE_GATEWAY_INTERNAL_URL: address.optional(),
  SLUICE_LAUNCHERS: z.string().default("local").transform(listed),
  /** Which launcher runs new workspaces of an environment, where it is not the first of SLUICE_LAUNCHERS: `a=local,b=kubernetes`. */
  SLUICE_ENVIRONMENT_LAUNCHERS: z
    .string()
    .default("")
    .transform((value) => Object.fromEntries(listed(value).map((pair) => pair.split("=", 2) as [string, string]))),
  /** Settings of the launcher `kubernetes`: a JSON file. */
  SLUICE_KUBERNETES_SETTINGS: z.string().min(1).optional(),
  /**
   * Folders of the launcher `local`'s machine below which datasets may lie; `{team}` stands for a team's name, and what
   * lies there its leads may register, too. Without it: `datasets` and `datasets/teams/{team}` of the state folder.
   */
  SLUICE_DATASET_FOLDERS: z.string().default("").transform(listed),
  /** A workspace without activity for so long is stopped, where its team says nothing else; 0: never. */
  SLUICE_WORKSPACE_IDLE_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .default(8 * 3600),
  /** Maximum running workspaces of one person. */
  SLUICE_RUNNING_WORKSPACES: z.coerce.number().int().min(1).max(1_000).default(10),
  /** Days for which the files of a removed workspace are kept; 0: they are deleted at once. */
  SLUICE_REMOVED_WORKSPACE_DAYS: z.coerce.number().int().min(0).max(365).default(7),
  /** Removed workspaces of one person whose files are kept; above it, the oldest are deleted. */
  SLUICE_REMOVED_WORKSPACES: z.coerce.number().int().min(1).max(1_000).default(10),
  /** Limit of the files of one person's removed local workspaces, GiB; above it, the oldest are deleted. */
  SLUICE_REMOVED_FILES_GIB: z.coerce.number().int().min(1).default(100),
  /** Limit of the files on disk of a local workspace with 4 GiB of memory, GiB; other sizes have it in proportion. */
  SLUICE_WORKSPACE_FILES_GIB: z.coerce.number().int().min(1).default(100),
  /** Memory that the running local workspaces may have together by their sizes, GiB; default: twice the memory of the machine. */
  SLUICE_LOCAL_MEMORY_GIB: z.coerce.number().positive().optional(),
  /** A kernel that runs for so long is told to its holder and to the leads of their team, and audited, where the team's policy says nothing else; 0: none is. */
  SLUICE_LONG_KERNEL_SECONDS: z.coerce.number().int().min(0).default(300),
  /** In which prices are given and costs are told: ISO 4217. */
  SLUICE_CURRENCY: z
    .string()
    .regex(/^[A-Z]{3}$/, "three capital letters, e.g. EUR")
    .default("EUR"),
  /** IANA time zone of the weekdays and hours in calendars. */
  SLUICE_TIME_ZONE: zoneName("an IANA time zone, e.g. Europe/Berlin").default("UTC"),
  /** Set by `npm start -- --demo`: what the pages show is made up, and nothing can be launched. */
  SLUICE_SAMPLE_DATA: z
    .literal("1")
    .optional()
    .transform((value) => value !== undefined),
  SLUICE_AUTH_SECRET: z.string().min(32).optional(),
  SLUICE_SIGNING_KEY: z.string().min(1).optional(),
  /** 32 bytes in base64url that encrypt the workspaces' variables. */
  SLUICE_SECRETS_KEY: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, "32 bytes in base64url (43 characters)")
    .optional(),
  SLUICE_ADMIN_EMAIL: z.email().optional(),
  SLUICE_ADMIN_PASSWORD: z.string().min(1).optional(),
  /** Whose link for a new password a start prints: the way back in for the only admin. */
  SLUICE_PASSWORD_LINK_FOR: z.email().optional(),
  /** How many calls of the API one personal access token may make in a minute, at each portal process. */
  SLUICE_TOKEN_REQUESTS_PER_MINUTE: z.coerce.number().int().min(1).default(600),
  /** Requests for a GPU, and extensions of leases, that one workspace may send in a minute, at each broker process. */
  SLUICE_LEASE_REQUESTS_PER_MINUTE: z.coerce.number().int().min(1).default(120),
  SLUICE_OIDC_ISSUER: z.url().optional(),
  SLUICE_OIDC_CLIENT_ID: z.string().min(1).optional(),
  SLUICE_OIDC_CLIENT_SECRET: z.string().min(1).optional(),
  /** The claim of the ID token that lists a person's groups, and what the provider has to be asked for to send it. */
  SLUICE_OIDC_GROUPS_CLAIM: z.string().min(1).default("groups"),
  SLUICE_OIDC_SCOPE: z.string().min(1).default("openid email profile"),
  SLUICE_OIDC_NAME: z.string().min(1).default("SSO"),
  /** Treats an e-mail as verified when the ID token has no `email_verified`, as with Entra ID. `false` stays false. */
  SLUICE_OIDC_TRUST_EMAIL: z
    .enum(["0", "1"])
    .default("0")
    .transform((value) => value === "1"),
  SLUICE_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "silent"]).default("info"),
  /** The built `sluice_gpu` wheel. */
  SLUICE_WHEEL: z.string().min(1).optional(),
});

/** Microsoft's issuers for accounts of every tenant: each tenant's admins write the e-mails of their accounts. */
const EVERY_TENANT = /^https:\/\/login\.microsoftonline\.com\/(common|organizations|consumers)(\/|$)/i;

const schema = settings.refine(
  (given) => !given.SLUICE_OIDC_TRUST_EMAIL || !EVERY_TENANT.test(given.SLUICE_OIDC_ISSUER ?? ""),
  {
    path: ["SLUICE_OIDC_TRUST_EMAIL"],
    message: "this issuer signs in accounts of every tenant. Set SLUICE_OIDC_ISSUER to the issuer of your own tenant.",
  },
);

export type Env = z.infer<typeof schema>;

/** Reads and checks the settings; an empty variable counts as not set. Throws one error that names every wrong one. */
export function readEnv(source: Record<string, string | undefined> = process.env): Env {
  const given = Object.fromEntries(Object.entries(source).filter(([, value]) => value !== undefined && value !== ""));
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
    throw new Error(`These settings are wrong:\n${lines.join("\n")}`);
  }
  return parsed.data;
}

let cached: Env | undefined;

/** The settings of this process, read once. */
export function env(): Env {
  cached ??= readEnv();
  return cached;
}

/** Forgets what was read, for tests that change the environment. */
export function resetEnv(): void {
  cached = undefined;
}

/** The database's address; processes that need one stop here with what to do. */
export function databaseUrl(): string {
  const value = env().DATABASE_URL;
  if (value === undefined) throw new Error("DATABASE_URL is not set. `npm start` sets it for an embedded PostgreSQL.");
  return value;
}
