/** Pages and server actions: who is signed in, and the context for services. */

import { headers } from "next/headers";
import { cache } from "react";
import type { Principal } from "#server/auth/principal.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import type { Context } from "#server/context.ts";
import { database } from "#server/db/client.ts";
import { clientAddress } from "#server/http/client-address.ts";
import { traceIdFrom } from "#server/log.ts";

/** Who makes the request that is being rendered; asked once a request. */
export const getPrincipal = cache(async (): Promise<Principal> => {
  return await principalFromHeaders(database().db, await headers());
});

/** The context with which a page or a server action calls services. */
export const getContext = cache(async (): Promise<Context> => {
  const given = await headers();
  return {
    db: database().db,
    principal: await getPrincipal(),
    now: () => new Date(),
    traceId: traceIdFrom(given.get("traceparent")),
    address: clientAddress(given) ?? undefined,
  };
});
