import { describe, expect, it } from "vitest";
import { decide, type Measured } from "./limit-decision.ts";
import { recordOf } from "./limit-record.ts";

const MIB = 1024 ** 2;
const limits = { memoryBytes: 1000 * MIB, tasks: 512 };

const measured = (different: Partial<Measured>): Measured => ({
  ...{ limits, memoryBytes: 500 * MIB, tasks: 100, programs: [], endedProcesses: 0 },
  ...different,
});
const program = (pid: number, mib: number) => ({ pid, memoryBytes: mib * MIB });

describe("a workspace above its limits", () => {
  it("keeps everything within a small tolerance", () => {
    expect(decide(measured({}))).toEqual({ kind: "keep" });
    expect(decide(measured({ memoryBytes: 1025 * MIB, tasks: 520 }))).toEqual({ kind: "keep" });
  });

  it("loses its largest program where that frees enough", () => {
    const programs = [program(7, 100), program(8, 700), program(9, 300)];
    const decision = decide(measured({ memoryBytes: 1200 * MIB, programs }));
    expect(decision).toEqual({ kind: "end-process", ...program(8, 700) });
  });

  it("ends where no program frees enough, as with files in memory", () => {
    const programs = [program(7, 100), program(8, 150)];
    const decision = decide(measured({ memoryBytes: 1200 * MIB, programs }));
    expect(decision).toEqual({ kind: "end-workspace", cause: "memory" });
  });

  it("ends when its programs reach the limit again and again", () => {
    const decision = decide(measured({ memoryBytes: 1200 * MIB, programs: [program(8, 700)], endedProcesses: 5 }));
    expect(decision).toEqual({ kind: "end-workspace", cause: "memory" });
  });

  it("ends above the limit of processes", () => {
    expect(decide(measured({ tasks: 600 }))).toEqual({ kind: "end-workspace", cause: "tasks" });
  });

  it("has a reason that names the limit and what to do", () => {
    const at = new Date();
    const { sentence } = recordOf({ kind: "end-workspace", cause: "tasks" }, { generation: 1, at, limits });
    expect(sentence).toContain("ended at its limit of 512 processes and threads.");
    expect(sentence).toContain("choose a larger size");
  });
});
