import type { NextRequest } from "next/server";
import NextAuth from "next-auth";
import { authOptions } from "#server/auth/next-auth.ts";
import { env } from "#server/env.ts";

type At = { params: Promise<{ nextauth: string[] }> };

async function handle(request: NextRequest, at: At): Promise<Response> {
  // next-auth builds its links from this variable alone.
  process.env.NEXTAUTH_URL = env().SLUICE_PORTAL_URL;
  return (await NextAuth(request, at, await authOptions(request))) as Response;
}

export { handle as GET, handle as POST };
