import { readdir } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { RouteDefinition, RouteHandler } from "#server/http/route.ts";

const ROOT = path.join("app", "api", "v1");
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

export type ApiRoute = { file: string; definition: RouteDefinition; handler: RouteHandler };

/** Every route below app/api/v1, from the files themselves: what is not built by `route()` is an error. */
export async function readRoutes(): Promise<ApiRoute[]> {
  const routes: ApiRoute[] = [];
  const files = await readdir(ROOT, { recursive: true });
  for (const relative of files.filter((name) => path.basename(name) === "route.ts").sort()) {
    const file = path.join(ROOT, relative);
    const exported = (await import(pathToFileURL(path.resolve(file)).href)) as Record<string, unknown>;
    const expected = `/${path.dirname(relative)}`.replace(/\[(\w+)\]/g, "{$1}");
    for (const [name, handler] of Object.entries(exported)) {
      if (!METHODS.includes(name)) continue;
      if (!isRouteHandler(handler)) throw new Error(`${file}: ${name} is not made by route() of #server/http/route.ts`);
      const { definition } = handler;
      if (definition.method !== name || definition.path !== expected) {
        throw new Error(`${file}: says ${definition.method} ${definition.path}, but is ${name} ${expected}`);
      }
      routes.push({ file, definition, handler });
    }
  }
  return routes;
}

function isRouteHandler(value: unknown): value is RouteHandler {
  return typeof value === "function" && "definition" in value;
}
