/**
 * Time-outs of every HTTP server of ours. A proxy in front reuses a connection until its own idle limit: ingress-nginx
 * and AWS load balancers 60 s, Traefik 90 s. A server that closes earlier breaks the request that is on its way.
 */
export const keptConnections = {
  keepAliveTimeout: 95_000,
  /** From the first byte of a request to the end of its headers; time without a request does not count. */
  headersTimeout: 60_000,
} as const;
