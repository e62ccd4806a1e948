/** Imports point one way: app, broker, gateway -> services -> scheduler, db, launchers -> contracts. */
module.exports = {
  forbidden: [
    {
      name: "no-circular",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    { name: "server-not-to-pages", severity: "error", from: { path: "^server/" }, to: { path: "^(app|components)/" } },
    {
      name: "scheduler-is-pure",
      severity: "error",
      // Random histories are for tests alone.
      from: { path: "^server/scheduler/", pathNot: "(\\.test\\.ts$|^server/scheduler/history/)" },
      to: { path: "^(server/(?!scheduler|contracts)|node_modules|app|components)" },
    },
    {
      name: "contracts-stand-alone",
      severity: "error",
      from: { path: "^server/contracts/", pathNot: "\\.test\\.ts$" },
      to: { path: "^server/(?!contracts)" },
    },
    {
      name: "services-not-to-processes",
      severity: "error",
      from: { path: "^server/services/", pathNot: "\\.test\\.ts$" },
      to: { path: "^server/(broker|gateway|portal)/" },
    },
    // The chart gives each process the keys that it can reach, and no others (deploy/helm/sluice/templates).
    {
      name: "gateway-and-migration-use-no-keys",
      severity: "error",
      from: { path: "^server/(gateway|install)/main\\.ts$" },
      to: { path: "^server/auth/keys\\.ts$", reachable: true },
    },
    {
      name: "portal-signs-no-session-tokens",
      severity: "error",
      from: { path: "^app/" },
      to: { path: "^server/services/lease/signer\\.ts$", reachable: true },
    },
    {
      name: "broker-makes-no-cookies",
      severity: "error",
      from: { path: "^server/broker/main\\.ts$" },
      to: { path: "^server/auth/(session-cookie|next-auth)\\.ts$", reachable: true },
    },
    {
      name: "components-not-to-server-code",
      severity: "error",
      from: { path: "^components/" },
      to: { path: "^server/(?!contracts)", dependencyTypesNot: ["type-only"] },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
  },
};
