/**
 * What remoting costs, in one program that starts its own gpud (null device for calls, software GPU for copies):
 *
 * - `launch_us`: a kernel launch, executed and acknowledged, flush included; `calls_per_s`: posted calls with client
 *   and gpud together on one core; `roundtrip_us`: an empty blocking call (`_asleep`: after a pause); `attach_ms`: from
 *   asking for a lease to the result of a first kernel. `_rtt02` and `_rtt1`: through a line that adds 0.2 and 1 ms.
 * - `h2d_share`, `d2h_share`: copies of 256 MiB, contents compared, as a share of what bare connections of the same
 *   kind and number carry between the same memory; `tls_` the same with TLS.
 */
import { figures, nativeProgram } from "#scripts/bench/program.ts";

export const targets = {
  launch_us: "<= 1.0",
  calls_per_s: ">= 1500000",
  roundtrip_us: "<= 40",
  h2d_share: ">= 0.8",
  d2h_share: ">= 0.8",
  tls_h2d_share: ">= 0.8",
  tls_d2h_share: ">= 0.8",
};

export async function run(): Promise<{ metrics: Record<string, number> }> {
  return { metrics: await nativeProgram("sluice-remoting-bench", figures) };
}
