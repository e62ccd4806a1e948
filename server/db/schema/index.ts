export * from "./audit.ts";
export * from "./images.ts";
export * from "./leases.ts";
export * from "./pool.ts";
export * from "./sign-in-failures.ts";
export * from "./teams.ts";
export * from "./users.ts";
export * from "./workspaces.ts";
