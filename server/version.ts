import manifest from "../package.json" with { type: "json" };

/** The version of this installation's own processes. */
export const VERSION: string = manifest.version;
