/**
 * What one CUDA call costs over loopback: a posted call on the client (flush and acknowledgement included), an empty
 * blocking call, and the processor time of both sides. The measuring program starts a gpud with the null backend.
 */
import { figures, nativeProgram } from "#scripts/bench/program.ts";

export const targets = { posted_p50_us: "<= 3", roundtrip_p50_us: "<= 60" };

export async function run(): Promise<{ metrics: Record<string, number> }> {
  return { metrics: await nativeProgram("sluice-call-bench", figures) };
}
