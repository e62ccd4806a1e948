import path from "node:path";

/** Holds a folder for each workspace with a network of its own; the egress process lays a socket into each. */
export const egressFolder = (stateDir: string): string => path.join(stateDir, "egress");

/** The socket's name in a workspace's folder. */
export const EGRESS_SOCKET = "egress.sock";
