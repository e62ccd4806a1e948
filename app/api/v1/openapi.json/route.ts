import { z } from "zod";
import { nothing } from "#server/contracts/common.ts";
import { route } from "#server/http/route.ts";
import document from "../../../../openapi.json" with { type: "json" };

export const GET = route(
  {
    method: "GET",
    path: "/openapi.json",
    summary: "This API's description (OpenAPI 3.1)",
    action: "api.describe",
    input: nothing,
    output: z.looseObject({ openapi: z.string() }),
  },
  () => document,
);
