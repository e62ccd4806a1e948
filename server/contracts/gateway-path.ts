/** On each workspace's hostname, an address that tells a browser that it can reach the gateway. It answers 204. */
export const REACH_PATH = "/_sluice/reach";
