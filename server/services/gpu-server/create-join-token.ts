import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type CreateJoinTokenInput, createJoinTokenInput, type JoinToken } from "#server/contracts/gpu-server.ts";
import { oneTimeCodes } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { hashSecret, newId, newSecret } from "#server/ids.ts";
import { parse } from "#server/parse.ts";
import { gpudProgram } from "./gpud-program.ts";
import { installLine, quoted } from "./install-script.ts";

const VALID_MS = 3600_000;

/** A one-time token with which a gpud joins the pool, and the line to paste on its host. Valid for an hour. */
export async function createJoinToken(ctx: Context, raw: CreateJoinTokenInput = {}): Promise<JoinToken> {
  const input = parse(createJoinTokenInput, raw);
  authorize(ctx.principal, "gpu-server.create-join-token");
  const token = newSecret("slj");
  const expiresAt = new Date(ctx.now().getTime() + VALID_MS);
  await inTransaction(ctx, async (tx) => {
    const id = newId("otc");
    await tx.db.insert(oneTimeCodes).values({
      id,
      kind: "gpud-join",
      secretHash: hashSecret(token),
      createdAt: tx.now(),
      expiresAt,
    });
    await audit(tx, { action: "gpu-server.create-join-token", subject: id, detail: { name: input.name ?? null } });
  });
  const { SLUICE_PORTAL_URL: portalUrl, SLUICE_BROKER_URL: brokerUrl } = env();
  const downloads = (await gpudProgram()) !== undefined;
  const name = input.name === undefined ? "" : ` --name ${quoted(input.name)}`;
  return {
    token,
    expiresAt: expiresAt.toISOString(),
    command: downloads
      ? installLine({ portalUrl, token, name: input.name })
      : `gpud join ${brokerUrl} --token ${token}${name}`,
    downloads,
    warning: localWarning({
      SLUICE_BROKER_URL: brokerUrl,
      ...(downloads ? { SLUICE_PORTAL_URL: portalUrl } : {}),
    }),
  };
}

/** A warning with the settings whose address other hosts cannot reach; null: there is none. */
export function localWarning(urls: Record<string, string>): string | null {
  const hosts = Object.entries(urls).map(([setting, url]) => ({ setting, url, host: new URL(url).hostname }));
  const local = hosts.filter(({ host }) => isLocal(host));
  if (local.length > 0) {
    const named = local.map(({ url }) => url.replace(/\/$/, "")).join(" and ");
    const settings = local.map(({ setting }) => setting).join(" and ");
    return `Only this machine reaches ${named}. For a GPU server elsewhere, set ${settings} to an address that it reaches.`;
  }
  const inside = hosts.find(({ host }) => isInCluster(host));
  if (inside === undefined) return null;
  return `Only the cluster reaches ${inside.url.replace(/\/$/, "")}. For a GPU server elsewhere, set broker.url and broker.tls.existingSecret in the chart's values.`;
}

const isLocal = (host: string) =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^(127\.|0\.0\.0\.0$)/.test(host);

/** The name of a Kubernetes service. */
const isInCluster = (host: string) => /\.svc(\.cluster\.local)?$/.test(host);
