/**
 * Which errors a route can answer with, read from the sources: from its handler along every function of ours that is
 * named there, the codes that a `SluiceError` is made with. So the API's document forgets none and nobody keeps a list.
 * What is called through an interface (a launcher) is not followed; the contract test tells when that leaves one out.
 */
import path from "node:path";
import ts from "typescript";
import { type ErrorCode, errorCodes } from "#server/errors.ts";

/** What a `SluiceError` is made with in one declaration, and which other declarations that one names. */
type Found = { codes: ErrorCode[]; names: ts.Declaration[] };

export class RouteErrors {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  readonly #found = new Map<ts.Declaration, Found>();

  constructor(files: readonly string[]) {
    const { config } = ts.readConfigFile("tsconfig.json", (file) => ts.sys.readFile(file)) as { config: unknown };
    const { options } = ts.parseJsonConfigFileContent({ ...(config as object), files }, ts.sys, ".");
    this.#program = ts.createProgram([...files], { ...options, incremental: false, types: [] });
    this.#checker = this.#program.getTypeChecker();
  }

  /** Of the method (`GET`) that a route's file exports, in the order of `errorCodes`. */
  of(file: string, method: string): ErrorCode[] {
    const source = this.#program.getSourceFile(path.resolve(file)) ?? this.#program.getSourceFile(file);
    const symbol = source && this.#checker.getSymbolAtLocation(source);
    const exported = symbol && this.#checker.getExportsOfModule(symbol).find(({ name }) => name === method);
    const first = exported?.valueDeclaration;
    if (first === undefined) throw new Error(`${file} exports no ${method}.`);
    const [seen, codes] = [new Set([first]), new Set<ErrorCode>()];
    for (const declaration of seen) {
      const found = this.#look(declaration);
      for (const code of found.codes) codes.add(code);
      // A GET changes nothing: its origin is not checked, and its body is not read.
      const isCalled = (named: ts.Declaration) => !["refuseCrossOrigin", "readBody"].includes(nameOf(named) ?? "");
      for (const named of found.names) if (method !== "GET" || isCalled(named)) seen.add(named);
    }
    return errorCodes.filter((code) => codes.has(code));
  }

  #look(declaration: ts.Declaration): Found {
    const known = this.#found.get(declaration);
    if (known !== undefined) return known;
    const found: Found = { codes: [], names: [] };
    this.#found.set(declaration, found);
    const visit = (node: ts.Node): void => {
      if (ts.isTypeNode(node)) return;
      // What an object's property is may be anybody's; the object itself is looked at.
      if (ts.isPropertyAccessExpression(node)) {
        visit(node.expression);
        return;
      }
      if (ts.isNewExpression(node) && node.expression.getText() === "SluiceError") found.codes.push(...codesOf(node));
      if (ts.isIdentifier(node)) found.names.push(...this.#declared(node));
      ts.forEachChild(node, visit);
    };
    ts.forEachChild(declaration, visit);
    return found;
  }

  /** The function or value of ours that a name stands for. */
  #declared(name: ts.Identifier): ts.Declaration[] {
    let symbol = ts.isShorthandPropertyAssignment(name.parent)
      ? this.#checker.getShorthandAssignmentValueSymbol(name.parent)
      : this.#checker.getSymbolAtLocation(name);
    if (symbol === undefined) return [];
    if (symbol.flags & ts.SymbolFlags.Alias) symbol = this.#checker.getAliasedSymbol(symbol);
    const declaration = symbol.valueDeclaration;
    // What is declared in a function has been looked at with it; to do so again changes nothing.
    if (declaration === undefined || declaration.getSourceFile().fileName.includes("node_modules")) return [];
    return ts.isFunctionDeclaration(declaration) || ts.isVariableDeclaration(declaration) ? [declaration] : [];
  }
}

const nameOf = (declaration: ts.Declaration) => ts.getNameOfDeclaration(declaration)?.getText();

/** The codes in the first argument: one, or one of two. */
function codesOf({ arguments: [first] = ts.factory.createNodeArray<ts.Expression>() }: ts.NewExpression): ErrorCode[] {
  if (first === undefined) return [];
  const parts = ts.isConditionalExpression(first) ? [first.whenTrue, first.whenFalse] : [first];
  return parts.map((part) => {
    const code = ts.isStringLiteral(part) ? errorCodes.find((each) => each === part.text) : undefined;
    if (code === undefined) throw new Error(`No code of the closed set: ${part.getText()}`);
    return code;
  });
}
