import next from "eslint-config-next/core-web-vitals";
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
      "@typescript-eslint/restrict-template-expressions": "off",
    },
  },
);
