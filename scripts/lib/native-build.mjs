// Plain JavaScript: `bootstrap.mjs` needs it before there are any packages.

const BUILD = ["build", "--release", "--locked", "--workspace", "--exclude", "sluice-xtask"];

/** cargo's arguments for what an installation runs: gpud, the `sluice` command and the client libraries. */
export const PRODUCT_BUILD = [...BUILD, "--exclude", "sluice-conformance"];

/** The same with the programs that tests and benchmarks run. */
export const EVERYTHING_BUILD = BUILD;
