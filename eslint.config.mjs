import next from "eslint-config-next/core-web-vitals";
import * as regexp from "eslint-plugin-regexp";
import ts from "typescript-eslint";

const clientModule = 'Program:has(ExpressionStatement[directive="use client"])';
/** Names of neither components nor hooks: `plain`, `_plain`, `DAY_MS`. */
const plainName = "/^(?!use[A-Z])([^A-Z]|[A-Z0-9_]+$)/";
const onlyComponentsAndHooks = [
  `${clientModule} > ExportNamedDeclaration > FunctionDeclaration[id.name=${plainName}]`,
  `${clientModule} > ExportNamedDeclaration > VariableDeclaration > VariableDeclarator[id.name=${plainName}]`,
  `${clientModule} > ExportNamedDeclaration[exportKind!="type"] > ExportSpecifier[exported.name=${plainName}]`,
  `${clientModule} > ExportDefaultDeclaration > FunctionDeclaration[id.name=/^[^A-Z]/]`,
  `${clientModule} > ExportAllDeclaration[exportKind!="type"]`,
].map((selector) => ({
  selector,
  message: 'A "use client" module exports components, hooks and types. Put other functions into a module of their own.',
}));

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
    // The server gets no function from a client module, only a reference that it must not call.
    files: ["app/**/*.ts", "app/**/*.tsx", "components/**/*.ts", "components/**/*.tsx"],
    rules: { "no-restricted-syntax": ["error", ...onlyComponentsAndHooks] },
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
