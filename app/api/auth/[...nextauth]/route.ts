import { NextRequest } from "next/server";
import NextAuth from "next-auth";
import { handleAuth } from "#server/auth/handle-auth.ts";
import { env } from "#server/env.ts";

type At = { params: Promise<{ nextauth: string[] }> };

async function handle(request: NextRequest, at: At): Promise<Response> {
  // next-auth builds its links from this variable alone.
  process.env.NEXTAUTH_URL = env().SLUICE_PORTAL_URL;
  return await handleAuth(
    request,
    async ({ url, init: { signal: _, ...init } }, options) =>
      (await NextAuth(new NextRequest(url, init), at, options)) as Response,
  );
}

export { handle as GET, handle as POST };
