/** The package indexes that the operator has configured for this host. A mirror may have a private address. */
import { readFileSync } from "node:fs";

const VARIABLE =
  /^(?:PIP_(?:EXTRA_)?INDEX_URL|UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS)|PIP_FIND_LINKS)$/;
const SETTING = /^\s*(?:extra-)?index-url\s*=(.*)$/;
const PIP_CONFIGURATION = "/etc/pip.conf";

/** `host:port` of each index. `configuration` is the text of `/etc/pip.conf`, which every workspace sees. */
export function packageIndexes(
  environment: NodeJS.ProcessEnv,
  configuration: string = readConfiguration(),
): ReadonlySet<string> {
  const variables = Object.entries(environment).flatMap(([name, value = ""]) => (VARIABLE.test(name) ? [value] : []));
  const settings = configuration.split("\n").flatMap((line) => SETTING.exec(line)?.[1] ?? []);
  const urls = [...variables, ...settings]
    .flatMap((text) => text.split(/\s+/))
    .map((text) =>
      // uv names an index as `name=https://…`.
      URL.parse(text.replace(/^[\w-]+=(?=https?:)/, "")),
    );
  return new Set(
    urls
      .filter((url) => url?.protocol === "https:" || url?.protocol === "http:")
      .map((url) => `${url?.hostname}:${url?.port || (url?.protocol === "https:" ? 443 : 80)}`),
  );
}

function readConfiguration(): string {
  try {
    return readFileSync(PIP_CONFIGURATION, "utf8");
  } catch {
    return "";
  }
}
