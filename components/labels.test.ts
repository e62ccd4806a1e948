/** WCAG 2.5.3: a button's accessible name contains its visible words, so that voice control finds the button. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

const ROOT = path.join(import.meta.dirname, "..");
const BUTTONS = new Set(["Button", "ButtonLink", "DialogButton", "button"]);

/** The text of an attribute, with `…` for each expression; undefined without literal text. */
function wordsOf({ initializer }: ts.JsxAttribute): string | undefined {
  if (initializer === undefined) return undefined;
  if (ts.isStringLiteral(initializer)) return initializer.text;
  const value = ts.isJsxExpression(initializer) ? initializer.expression : undefined;
  if (value === undefined) return undefined;
  if (ts.isStringLiteralLike(value)) return value.text;
  if (!ts.isTemplateExpression(value)) return undefined;
  return value.head.text + value.templateSpans.map(({ literal }) => `…${literal.text}`).join("");
}

/** The accessible name and the visible text of each button that has both. */
function* buttonsIn(node: ts.Node): Generator<{ label: string; words: string }> {
  if (ts.isJsxElement(node) && BUTTONS.has(node.openingElement.tagName.getText())) {
    const named = node.openingElement.attributes.properties
      .filter(ts.isJsxAttribute)
      .find(({ name }) => name.getText() === "aria-label");
    const label = named && wordsOf(named);
    const words = node.children.filter(ts.isJsxText).map(({ text }) => text.trim());
    const [said = ""] = words.filter((text) => text !== "");
    if (label !== undefined && said !== "") yield { label, words: said };
  }
  const below: ts.Node[] = [];
  ts.forEachChild(node, (child) => {
    below.push(child);
  });
  for (const child of below) yield* buttonsIn(child);
}

it("names each button with the words on it", () => {
  const files = ["app", "components"].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".tsx") && !file.endsWith(".test.tsx"))
      .map((file) => path.join(folder, file)),
  );
  const buttons = files.flatMap((file) => {
    const text = readFileSync(path.join(ROOT, file), "utf8");
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
    return [...buttonsIn(source)].map((button) => ({ file, ...button }));
  });
  expect(buttons.length).toBeGreaterThan(10);
  expect(buttons.filter(({ label, words }) => !label.toLowerCase().includes(words.toLowerCase()))).toEqual([]);
});
