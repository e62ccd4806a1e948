import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { frameworkConditions, frameworkVariables, readFrameworkSettings } from "./framework-variables.ts";

const PACKAGE = path.resolve(import.meta.dirname, "..", "..", "..", "native", "python", "sluice_gpu");
const places = { libraries: "/opt/lib", tools: "/opt/tools" };

const settings = await readFrameworkSettings(PACKAGE);

describe("the frameworks' variables", () => {
  it("lead Triton to our driver, and on a software GPU past the assembler", () => {
    const real = frameworkVariables(settings, { conditions: frameworkConditions("h200", []), places });
    expect(real.TRITON_LIBCUDA_PATH).toBe("/opt/lib");
    expect(real).not.toHaveProperty("TRITON_PTXAS_PATH");
    expect(real).not.toHaveProperty("CUPY_COMPILE_WITH_PTX");
    const soft = frameworkVariables(settings, { conditions: frameworkConditions("soft", []), places });
    expect(soft.TRITON_PTXAS_PATH).toBe("/opt/tools/ptxas");
    expect(soft.CUPY_COMPILE_WITH_PTX).toBe("1");
  });

  it("leave to the process what depends on it: flags that only some versions know", () => {
    const soft = frameworkVariables(settings, { conditions: frameworkConditions("soft", []), places });
    expect(soft).not.toHaveProperty("XLA_FLAGS");
    expect(soft).not.toHaveProperty("CUDA_ROOT");
    expect(soft.XLA_PYTHON_CLIENT_PREALLOCATE).toBe("false");
    expect(soft.TF_FORCE_GPU_ALLOW_GROWTH).toBe("true");
  });

  it("skip the check of CUPTI only where there is none of ours", () => {
    const own = frameworkConditions("soft", ["libcupti.so.13"]);
    expect(frameworkVariables(settings, { conditions: own, places })).not.toHaveProperty(
      "JAX_SKIP_CUDA_CONSTRAINTS_CHECK",
    );
  });

  it("are none where the environment has no such package", async () => {
    expect(await readFrameworkSettings("/nowhere")).toEqual([]);
  });

  it("leave out what another package put beside ours: large files, other contents, pipes, links", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "sluice-frameworks-"));
    onTestFinished(async () => await rm(folder, { recursive: true }));
    const frameworks = path.join(folder, "frameworks");
    await mkdir(frameworks);
    const own = { variables: [{ name: "OWN", value: "1", reason: "ours" }] };
    await writeFile(path.join(frameworks, "own.json"), JSON.stringify(own));
    await writeFile(path.join(frameworks, "large.json"), JSON.stringify({ ...own, more: "x".repeat(1 << 20) }));
    await writeFile(path.join(frameworks, "list.json"), `[${"0,".repeat(1000)}0]`);
    await symlink("/etc/passwd", path.join(frameworks, "link.json"));
    execFileSync("mkfifo", [path.join(frameworks, "pipe.json")]);
    expect(await readFrameworkSettings(folder)).toEqual([{ variables: [{ ...own.variables[0], when: [] }] }]);
  });
});
