/** For tests of what is asked of a cluster: an API server that knows nothing but what a test answers. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { logger } from "#server/log.ts";
import { ClusterClient } from "./cluster-client.ts";
import { ClusterConfig, type ClusterLimits } from "./cluster-config.ts";

type Answer = (
  asked: URL,
  response: ServerResponse,
) => Promise<object | number | undefined> | object | number | undefined;

/**
 * `answer`: an object, or the number of a failure, perhaps later; undefined where it has answered itself. `asked` is
 * what was asked so far.
 */
export async function startApi(answer: Answer, limits: Partial<ClusterLimits> = {}) {
  const asked: URL[] = [];
  const tell = async (url: URL, response: ServerResponse) => {
    const told = await answer(url, response);
    if (told === undefined) return;
    response.writeHead(typeof told === "number" ? told : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(typeof told === "number" ? { kind: "Status", code: told } : told));
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://api");
    asked.push(url);
    void tell(url, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const config = new ClusterConfig(limits);
  const place = {
    name: "test",
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    skipTLSVerify: true,
  };
  config.loadFromClusterAndUser(place, { name: "test" });
  return {
    asked,
    client: new ClusterClient(config, logger("test")),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
