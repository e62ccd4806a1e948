/** What the broker answers over HTTP. Rules live in the services; this maps addresses to them. */
import type { Principal } from "#server/auth/principal.ts";
import type { ProcessHealth } from "#server/contracts/health.ts";
import { extendLeaseInput, openSessionInput } from "#server/contracts/lease.ts";
import { answersSoon } from "#server/db/answers-soon.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { parse } from "#server/parse.ts";
import { RateLimit } from "#server/rate-limit.ts";
import { join } from "#server/services/gpu-server/join.ts";
import { awaitNotice } from "#server/services/lease/await-notice.ts";
import { cancel } from "#server/services/lease/cancel.ts";
import { explanation } from "#server/services/lease/explanation.ts";
import { extend } from "#server/services/lease/extend.ts";
import { giveBack } from "#server/services/lease/give-back.ts";
import { history } from "#server/services/lease/history.ts";
import { openSession } from "#server/services/lease/open-session.ts";
import { MAX_POLL_SECONDS } from "#server/services/lease/policy.ts";
import { poll } from "#server/services/lease/poll.ts";
import { profile } from "#server/services/lease/profile.ts";
import { reportOwners } from "#server/services/lease/report-owners.ts";
import { request } from "#server/services/lease/request.ts";
import type { Signer } from "#server/services/lease/signer.ts";
import { status } from "#server/services/lease/status.ts";
import { admitReview } from "#server/services/pod/admit.ts";
import { join as joinPod } from "#server/services/pod/join.ts";
import { VERSION } from "#server/version.ts";
import type { Metrics } from "./metrics.ts";
import { type Call, type Route, Text } from "./router.ts";
import type { Watchers } from "./watchers.ts";

/** As much as the cluster's own store takes of one object. */
const MAX_POD = 3 * 1024 * 1024;

export type RouteOptions = {
  watch: Watchers["watch"];
  signer: Signer;
  metrics: Metrics;
  launchers: ReadonlyMap<string, Launcher>;
};

const leaseRequests = new RateLimit();

/** Counts what leaves rows that are never deleted; throws `too-many` for a program in a loop. */
function limitLeaseRequests(principal: Principal): void {
  if (principal.kind !== "workspace") return;
  const limit = env().SLUICE_LEASE_REQUESTS_PER_MINUTE;
  const seconds = leaseRequests.take(principal.workspaceId, limit);
  if (seconds === undefined) return;
  const message = `This workspace sent ${limit} requests for GPUs within a minute, which is the limit. Try again in ${seconds} s.`;
  throw new SluiceError("too-many", message, { retryAfterSeconds: seconds });
}

/** For workspaces and GPU servers. */
export function brokerRoutes({ watch, signer, metrics, launchers }: RouteOptions): Route[] {
  return [
    {
      method: "POST",
      path: "/v1/lease-requests",
      auth: "workspace",
      handle: async (ctx, { body }) => {
        limitLeaseRequests(ctx.principal);
        const answer = await request(ctx, body as Parameters<typeof request>[1]);
        metrics.decided(answer.state);
        return answer;
      },
    },
    {
      method: "GET",
      path: "/v1/lease-requests/:id",
      auth: "workspace",
      handle: async (ctx, call) => {
        const waitSeconds = Math.min(MAX_POLL_SECONDS, number(call, "wait"));
        return await poll(ctx, { requestId: param(call, "id"), waitSeconds }, watch(call.signal));
      },
    },
    {
      method: "GET",
      path: "/v1/lease-requests/:id/explanation",
      auth: "workspace",
      handle: async (ctx, call) => await explanation(ctx, { id: param(call, "id") }),
    },
    {
      method: "POST",
      path: "/v1/leases/:id/extend",
      auth: "workspace",
      handle: async (ctx, call) => {
        limitLeaseRequests(ctx.principal);
        return await extend(ctx, { leaseId: param(call, "id"), ...parse(extendLeaseInput, call.body) });
      },
    },
    {
      method: "GET",
      path: "/v1/leases/:id/notice",
      auth: "workspace",
      handle: async (ctx, call) => {
        const waitSeconds = Math.min(MAX_POLL_SECONDS, number(call, "wait"));
        const known = call.query.get("known") ?? "";
        return await awaitNotice(ctx, { leaseId: param(call, "id"), waitSeconds, known }, watch(call.signal));
      },
    },
    {
      method: "DELETE",
      path: "/v1/lease-requests/:id",
      auth: "workspace",
      handle: async (ctx, call) => await cancel(ctx, { requestId: param(call, "id") }),
    },
    {
      method: "POST",
      path: "/v1/leases/:id/sessions",
      auth: "workspace",
      handle: async (ctx, call) =>
        await openSession(ctx, { leaseId: param(call, "id"), ...parse(openSessionInput, call.body) }, signer),
    },
    {
      method: "DELETE",
      path: "/v1/leases/:id",
      auth: "workspace",
      handle: async (ctx, call) =>
        await giveBack(ctx, { leaseId: param(call, "id"), park: call.query.get("park") === "1" }, watch(call.signal)),
    },
    {
      method: "GET",
      path: "/v1/status",
      auth: "workspace",
      handle: async (ctx, { query }) => {
        const leaseId = query.get("leaseId");
        return await status(ctx, leaseId === null || leaseId === "" ? {} : { leaseId });
      },
    },
    {
      method: "GET",
      path: "/v1/leases",
      auth: "workspace",
      handle: async (ctx) => await history(ctx),
    },
    {
      method: "PUT",
      path: "/v1/owners",
      auth: "workspace",
      handle: async (ctx, { body }) => await reportOwners(ctx, body as Parameters<typeof reportOwners>[1]),
    },
    {
      method: "GET",
      path: "/v1/profile",
      auth: "workspace",
      handle: async (ctx, { query }) => await profile(ctx, { gpuType: query.get("type") ?? "" }),
    },
    {
      method: "POST",
      path: "/v1/gpu-servers/join",
      auth: "none",
      handle: async (ctx, { body }) => await join(ctx, body as Parameters<typeof join>[1]),
    },
    {
      method: "POST",
      path: "/v1/pods",
      auth: "none",
      handle: async (ctx, { body }) => await joinPod(ctx, body as Parameters<typeof joinPod>[1]),
    },
    {
      method: "GET",
      path: "/healthz",
      auth: "none",
      handle: async (ctx): Promise<ProcessHealth> => {
        await answersSoon(ctx.db);
        const found = await Promise.all(
          [...launchers.values()].map(async (each) => {
            const [refusal, limits] = await Promise.all([each.refusal?.(), each.limits?.()]);
            const isolation = await each.isolation();
            return { name: each.name, ...isolation, ...(refusal && { refusal }), ...(limits && { limits }) };
          }),
        );
        return { status: "ok", version: VERSION, launchers: found };
      },
    },
  ];
}

/** What workspaces have no business with: figures of the whole installation, and the API server's questions. */
export function internalRoutes(metrics: Metrics): Route[] {
  return [
    {
      method: "POST",
      path: "/v1/kubernetes/admission",
      auth: "none",
      maxBody: MAX_POD,
      handle: async (ctx, { body }) => await admitReview(ctx, body as Parameters<typeof admitReview>[1]),
    },
    {
      method: "GET",
      path: "/metrics",
      auth: "none",
      handle: async () => new Text(metrics.contentType, await metrics.read()),
    },
  ];
}

function param(call: Call, name: string): string {
  const value = call.params[name];
  if (value === undefined) throw new SluiceError("invalid", `The address lacks its ${name}.`);
  return value;
}

/** A number of the query; 0 when there is none. */
function number(call: Call, name: string): number {
  const value = Number(call.query.get(name) ?? 0);
  if (!Number.isFinite(value) || value < 0) throw new SluiceError("invalid", `${name} must be a number of seconds.`);
  return value;
}
