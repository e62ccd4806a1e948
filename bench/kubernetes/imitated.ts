/**
 * Nodes that kwok imitates: their pods are ready at once and run nothing. At all addresses of such pods one server
 * answers as JupyterLab does, whose kernels know one answer.
 */
import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import type { KernelMessage } from "@jupyterlab/services";
import { deserialize, serialize } from "@jupyterlab/services/lib/kernel/serialize.js";
import type { KubernetesObject } from "@kubernetes/client-node";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { JUPYTER_PORT } from "#server/launchers/kubernetes/objects.ts";
import type { KubernetesSettingsInput } from "#server/launchers/kubernetes/settings.ts";
import type { TestCluster } from "#server/launchers/kubernetes/testing.ts";

type SizeInput = KubernetesSettingsInput["sizes"][string];

const NODES = 10;
/** Where a size's pods go that are to be on such nodes. */
export const IMITATED: Pick<SizeInput, "nodeSelector" | "tolerations"> = {
  nodeSelector: { "sluice.dev/imitated": "true" },
  tolerations: [{ key: "kwok.x-k8s.io/node", operator: "Exists", effect: "NoSchedule" }],
};
/** Nobody else's here. */
const ADDRESSES = "10.250.0.0/16";
const PROTOCOL = "v1.kernel.websocket.jupyter.org";

/** Brings them into the cluster, for whoever is in its network; gives what ends kwok and the server. */
export async function imitateNodes(cluster: TestCluster, kwok: { program: string; stages: string }) {
  const chosen = ["--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"];
  const words = ["--kubeconfig", cluster.kubeconfig, "--config", kwok.stages, ...chosen, `--cidr=${ADDRESSES}`];
  const child = spawn(kwok.program, words, { stdio: "ignore" });
  const amounts = { cpu: "64", memory: "512Gi", pods: "110" };
  for (let index = 0; index < NODES; index++) {
    const node: KubernetesObject & Record<string, unknown> = {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name: `imitated-${index}`,
        annotations: { "kwok.x-k8s.io/node": "fake" },
        labels: { "kubernetes.io/os": "linux", ...IMITATED.nodeSelector },
      },
      spec: { taints: [{ key: "kwok.x-k8s.io/node", value: "fake", effect: "NoSchedule" }] },
      status: { allocatable: amounts, capacity: amounts },
    };
    await cluster.objects.create(node);
  }
  await promisify(execFile)("ip", ["route", "add", "local", ADDRESSES, "dev", "lo"]);
  const jupyter = await startJupyter(JUPYTER_PORT);
  return async () => {
    child.kill();
    await jupyter.close();
  };
}

/** A server that takes every token, and kernels that say 42 to whatever they are asked. */
export async function startJupyter(port: number) {
  const kernels = new Map<string, object>();
  const server = createServer((request, response) => answer(kernels, request, response));
  const sockets = new WebSocketServer({ server, handleProtocols: () => PROTOCOL });
  sockets.on("connection", (socket) => socket.on("message", (data) => reply(socket, data)));
  await new Promise<void>((resolve) => server.listen(port, resolve));
  return {
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(kernels: Map<string, object>, { method, url = "" }: IncomingMessage, response: ServerResponse): void {
  const [, what, id = ""] = /^\/api\/(\w+)(?:\/([^/?]+))?/.exec(url) ?? [];
  const json = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (what === "status") json(200, {});
  else if (what === "terminals") json(200, []);
  else if (what !== "kernels") json(404, {});
  else if (method === "POST") {
    const kernel = { id: randomUUID(), name: "python3", execution_state: "idle", connections: 0 };
    kernels.set(kernel.id, kernel);
    json(201, kernel);
  } else if (method === "DELETE") {
    kernels.delete(id);
    response.writeHead(204).end();
  } else json(200, id === "" ? [...kernels.values()] : kernels.get(id));
}

const LANGUAGE = { name: "python", version: "3.13", mimetype: "text/x-python", file_extension: ".py" };

function reply(socket: WebSocket, data: RawData): void {
  const asked = deserialize(new Uint8Array(data as Buffer).buffer, PROTOCOL);
  const tell = (type: string, channel: string, content: object) => {
    const header = { ...asked.header, msg_id: randomUUID(), msg_type: type };
    const message = { header, parent_header: asked.header, metadata: {}, channel, content, buffers: [] };
    socket.send(serialize(message as unknown as KernelMessage.IMessage, PROTOCOL));
  };
  tell("status", "iopub", { execution_state: "busy" });
  if (asked.header.msg_type === "kernel_info_request") {
    const itself = { implementation: "imitated", implementation_version: "1", protocol_version: "5.3", banner: "" };
    tell("kernel_info_reply", "shell", { status: "ok", ...itself, language_info: LANGUAGE, help_links: [] });
  }
  if (asked.header.msg_type === "execute_request") {
    tell("stream", "iopub", { name: "stdout", text: "42\n" });
    tell("execute_reply", "shell", { status: "ok", execution_count: 1, payload: [], user_expressions: {} });
  }
  tell("status", "iopub", { execution_state: "idle" });
}
