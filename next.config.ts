import type { NextConfig } from "next";

const config: NextConfig = {
  reactStrictMode: true,
  poweredByHeader: false,
  // Packages with native parts or dynamic imports of their own stay outside the bundle.
  serverExternalPackages: [
    "@jupyterlab/services",
    "@kubernetes/client-node",
    "@node-rs/argon2",
    "postgres",
    "pino",
    "prom-client",
  ],
  typedRoutes: false,
  // A page's title stands in its head, not behind its body: readers and tools that look at once find it. Pages read their
  // data before anything of them is sent, so nothing waits for it.
  htmlLimitedBots: /^/,
  // `npm run types` checks them, and the checks before a change lands call it: nobody waits for it at a first start.
  typescript: { ignoreBuildErrors: true },
  async redirects() {
    // Where password managers look for the form (https://w3c.github.io/webappsec-change-password-url/).
    return [{ source: "/.well-known/change-password", destination: "/settings?change-password=", permanent: false }];
  },
  async headers() {
    return [
      {
        source: "/:path*",
        headers: [
          { key: "X-Content-Type-Options", value: "nosniff" },
          { key: "X-Frame-Options", value: "DENY" },
          { key: "Referrer-Policy", value: "same-origin" },
        ],
      },
      {
        // No page: whatever an answer holds, a browser runs and frames nothing of it.
        source: "/api/:path*",
        headers: [
          { key: "Content-Security-Policy", value: "default-src 'none'; base-uri 'none'; frame-ancestors 'none'" },
        ],
      },
    ];
  },
};

export default config;
