import type { KernelOutput } from "#server/contracts/workspace-kernel.ts";

/** Runs code in a kernel; `onOutput` hears of each output, the last one is `done`. Throws a sentence. */
export async function runCell(
  where: { workspaceId: string; kernelId: string },
  code: string,
  onOutput: (output: KernelOutput) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(`/api/v1/workspaces/${where.workspaceId}/kernels/${where.kernelId}/run`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
    signal,
  });
  if (!response.ok || response.body === null) {
    const answer = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
    throw new Error(answer?.error?.message ?? `The portal answered ${response.status}.`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (rest + part.value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data !== undefined) onOutput(JSON.parse(data.slice("data: ".length)) as KernelOutput);
    }
  }
}
