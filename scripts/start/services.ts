/** The processes of an installation: how each is started and how it says that it is ready. */
import { existsSync } from "node:fs";
import path from "node:path";
import { type Service, startService } from "#scripts/lib/processes.ts";
import { watchdogOf } from "#scripts/lib/watchdog.ts";
import type { Ports } from "#scripts/start/config.ts";
import { FIRST_DESCRIPTOR, type HeldSockets, type Inheritance } from "#scripts/start/held-sockets.ts";
import { gpudSockets } from "#server/launchers/local/workspace-files.ts";

export type Setting = {
  root: string;
  stateDir: string;
  ports: Ports;
  sockets: HeldSockets;
  env: NodeJS.ProcessEnv;
  onRestart: (reason: string) => void;
};

type Starter = () => Promise<Service>;

/** A starter for each process. */
export function services(setting: Setting): Record<"portal" | "broker" | "gateway" | "egress" | "gpud", Starter> {
  const { root, stateDir, ports, sockets, env } = setting;
  const nodeProgram = (name: "portal" | "broker" | "gateway" | "egress", ...held: number[]): Starter => {
    const inherited = sockets.inheritanceOf(...held);
    const own = {
      ...env,
      SLUICE_LISTEN_FDS: inherited.variable,
      // Names are resolved on these threads, and a resolver that does not answer holds one for half a minute.
      ...(name === "egress" && { UV_THREADPOOL_SIZE: "128" }),
    };
    return () => start(setting, own, name, process.execPath, [`server/${name}/main.ts`], inherited);
  };
  const gpudSocket = sockets.inheritanceOf(ports.gpudPort);
  return {
    portal: nodeProgram("portal", ports.portalPort),
    broker: nodeProgram("broker", ports.brokerPort, ports.brokerInternalPort),
    gateway: nodeProgram("gateway", ports.gatewayPort),
    egress: nodeProgram("egress"),
    gpud: () => {
      const token = env.SLUICE_JOIN_TOKEN;
      return start(
        setting,
        forGpud(env),
        "gpud",
        path.join(root, "native", "target", "release", "gpud"),
        [
          "--state",
          path.join(stateDir, "gpud"),
          "--broker",
          env.SLUICE_BROKER_URL ?? "",
          "--listen",
          `127.0.0.1:${ports.gpudPort}`,
          "--listen-fd",
          String(FIRST_DESCRIPTOR),
          "--sockets",
          gpudSockets(stateDir),
          "--backend",
          "soft",
          "--name",
          "local",
          ...(token ? ["--join-token", token] : []),
        ],
        gpudSocket,
      );
    },
  };
}

/** gpud runs what clients send: it gets what its programs need to run and none of the installation's secrets. */
function forGpud(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const wanted = /^(PATH|HOME|LANG|LC_.*|TZ|TMPDIR|LD_LIBRARY_PATH|SSL_CERT_.*|CUDA_.*|NVIDIA_.*|RUST_.*|NODE_ENV)$/;
  const kept = Object.entries(env).filter(([name]) => wanted.test(name));
  return { NODE_ENV: "production", ...Object.fromEntries(kept) };
}

async function start(
  setting: Setting,
  env: NodeJS.ProcessEnv,
  name: string,
  program: string,
  args: string[],
  { descriptors }: Inheritance,
): Promise<Service> {
  // Ends with this script even when it is killed: a second start finds the ports free. Keeps descriptors.
  const bound = existsSync("/usr/bin/setpriv") ? ["setpriv", "--pdeathsig", "TERM", "--"] : [];
  const [command = program, ...rest] = [...bound, program, ...args];
  return await startService(name, {
    command,
    args: rest,
    env,
    cwd: setting.root,
    logFile: path.join(setting.stateDir, "logs", `${name}.log`),
    ready: (line) => line.includes(`"ready":"${name}"`),
    descriptors,
    // A GPU server that was removed from the pool ends in order.
    mayEnd: name === "gpud",
    onRestart: setting.onRestart,
    watchdog: watchdogOf(name, setting.ports, env),
  });
}
