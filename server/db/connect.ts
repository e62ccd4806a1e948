import postgres from "postgres";

/** PostgreSQL's own port, which names its Unix socket as well. */
export const DEFAULT_PORT = "5432";

/** The name of PostgreSQL's socket in its folder. */
export const SOCKET_NAME = `.s.PGSQL.${DEFAULT_PORT}`;

/**
 * Connects postgres.js to a connection string: the one caller of `postgres()`. A folder in the parameter `host` names a
 * Unix socket, as in libpq (postgres://user:password@localhost/database?host=/folder). postgres.js takes one by an
 * option alone, and would send the parameter to the server as a setting.
 */
export function connect(url: string, options: postgres.Options<Record<string, never>>): postgres.Sql {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const folder = parsed?.searchParams.get("host");
  if (parsed === undefined || !folder?.startsWith("/")) return postgres(url, options);
  parsed.searchParams.delete("host");
  return postgres(parsed.href, { ...options, path: `${folder}/.s.PGSQL.${parsed.port || DEFAULT_PORT}` });
}
