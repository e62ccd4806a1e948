import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { EXAMPLES, IMPORTS, writeExamples } from "./examples.ts";

/** Prints what each file of a folder imports beside Python's own modules, as JSON. */
const READ = `import ast, json, pathlib, sys
found = {}
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    text = file.read_text()
    if file.suffix == ".ipynb":
        cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        lines = "".join("".join(source) + "\\n" for source in cells).split("\\n")
        text = "\\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    found[file.name] = sorted(names - sys.stdlib_module_names)
print(json.dumps(found))`;

it("knows of every example what it imports", async () => {
  const { stdout } = await promisify(execFile)("python3", ["-c", READ, EXAMPLES]);
  expect(JSON.parse(stdout)).toEqual(IMPORTS);
});

it("gives a home the examples that its environment can run", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-examples-"));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const given = async (name: string, ...imported: string[]) => {
    const root = path.join(folder, name);
    const packages = path.join(root, "lib", "python3.11", "site-packages");
    await mkdir(packages, { recursive: true });
    for (const one of imported) await mkdir(path.join(packages, one));
    await writeExamples(path.join(root, "examples"), { path: root, pythonVersion: "3.11" });
    return (await readdir(path.join(root, "examples"))).sort();
  };
  expect(await given("minimal", "jupyterlab")).toEqual(["driver-alone.ipynb"]);
  expect(await given("some", "numpy", "numba")).toEqual([
    "driver-alone.ipynb",
    "matmul-shared.ipynb",
    "reduction-atomics.ipynb",
    "script.py",
  ]);
  expect(await given("all", "numpy", "numba", "matplotlib", "sklearn")).toEqual((await readdir(EXAMPLES)).sort());
});
