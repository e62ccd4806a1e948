/** The processes of an installation: how each is started and how it says that it is ready. */
import { existsSync } from "node:fs";
import path from "node:path";
import { type Service, startService } from "#scripts/lib/processes.ts";
import { watchdogOf } from "#scripts/lib/watchdog.ts";
import type { Ports } from "#scripts/start/config.ts";
import { gpudSockets } from "#server/launchers/local/workspace-files.ts";

export type Setting = {
  root: string;
  stateDir: string;
  ports: Ports;
  env: NodeJS.ProcessEnv;
  onRestart: (reason: string) => void;
};

type Starter = () => Promise<Service>;

/** A starter for each process. */
export function services(setting: Setting): Record<"portal" | "broker" | "gateway" | "egress" | "gpud", Starter> {
  const { root, stateDir, ports, env } = setting;
  const nodeProgram = (name: string, args: string[], ready: (line: string) => boolean): Starter => {
    return () => start(setting, env, name, process.execPath, args, ready);
  };
  const saysReady = (name: string) => (line: string) => line.includes(`"ready":"${name}"`);
  return {
    portal: nodeProgram(
      "portal",
      ["node_modules/next/dist/bin/next", "start", "-H", "127.0.0.1", "-p", String(ports.portalPort)],
      (line) => line.includes("Ready in"),
    ),
    broker: nodeProgram("broker", ["server/broker/main.ts"], saysReady("broker")),
    gateway: nodeProgram("gateway", ["server/gateway/main.ts"], saysReady("gateway")),
    egress: nodeProgram("egress", ["server/egress/main.ts"], saysReady("egress")),
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
          "--sockets",
          gpudSockets(stateDir),
          "--backend",
          "soft",
          "--name",
          "local",
          ...(token ? ["--join-token", token] : []),
        ],
        saysReady("gpud"),
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
  ready: (line: string) => boolean,
): Promise<Service> {
  // Ends with this script even when it is killed: a second start finds the ports free.
  const bound = existsSync("/usr/bin/setpriv") ? ["setpriv", "--pdeathsig", "TERM", "--"] : [];
  const [command = program, ...rest] = [...bound, program, ...args];
  return await startService(name, {
    command,
    args: rest,
    env,
    cwd: setting.root,
    logFile: path.join(setting.stateDir, "logs", `${name}.log`),
    ready,
    // A GPU server that was removed from the pool ends in order.
    mayEnd: name === "gpud",
    onRestart: setting.onRestart,
    watchdog: watchdogOf(name, setting.ports, env),
  });
}
