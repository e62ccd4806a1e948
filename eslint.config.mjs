import next from "eslint-config-next/core-web-vitals";
import * as regexp from "eslint-plugin-regexp";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["node_modules/**", ".next/**", ".sluice/**", "native/**", "drizzle/**", "next-env.d.ts", "dist/**"] },
  ...next,
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [...ts.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/no-non-null-assertion": "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/no-floating-promises": [
        "error",
        { allowForKnownSafeCalls: [{ from: "package", name: ["it", "describe"], package: "node:test" }] },
      ],
      "@typescript-eslint/restrict-template-expressions": "off",
    },
  },
  {
    // One request with a regular expression of this kind keeps a whole process busy.
    files: ["**/*.ts", "**/*.tsx", "**/*.mjs"],
    ignores: ["**/*.test.*", "e2e/**", "**/*.cluster.ts", "**/*.guest.ts"],
    plugins: { regexp },
    rules: {
      "regexp/no-super-linear-backtracking": ["error", { report: "potential" }],
      "regexp/no-super-linear-move": ["error", { report: "potential" }],
    },
  },
);
