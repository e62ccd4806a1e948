import path from "node:path";

/** Holds one folder for each workspace with its own network. The egress process puts a socket into each folder. */
export const egressFolder = (stateDir: string): string => path.join(stateDir, "egress");

/** The socket's name in a workspace's folder. */
export const EGRESS_SOCKET = "egress.sock";
