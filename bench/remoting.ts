/**
 * What remoting costs, in one program that starts its own gpud (null device for calls, software GPU for copies):
 *
 * - `launch_us`: a kernel launch, executed and acknowledged, flush included; `calls_per_s`: posted calls with client
 *   and gpud together on one core; `roundtrip_us`: an empty blocking call (`_asleep`: after a pause); `attach_ms`: from
 *   asking for a lease to the result of a first kernel. `_tls`: with TLS; `_rtt02` and `_rtt1`: through a line that
 *   adds 0.2 and 1 ms.
 * - `h2d_share`, `d2h_share`: copies of 256 MiB, contents compared, as a share of what bare connections of the same
 *   kind and number carry between the same memory; `tls_` the same with TLS; `shared_` through the memory that client
 *   and gpud share on one host, as a share of what the Unix sockets carry that it stands in for.
 * - `module_sent_ms`, `module_kept_ms`: from asking for a lease to the result of the first kernel of a fat binary of
 *   five images of 48 MiB, where gpud keeps no images, and where an earlier lease has sent it; `module_ten_`: until ten
 *   processes that begin together have such a module.
 * - `blocking_gpt`, `_mlp`, `_inference`: round trips that an iteration of these PyTorch programs waits for, from the
 *   third on (`bench/remoting`; on the null device); `_first`: in the two before that, together.
 */
import path from "node:path";
import { figures, nativeProgram } from "#scripts/bench/program.ts";
import { countBlocking } from "./remoting/blocking.ts";

export const targets = {
  launch_us: "<= 1.0",
  calls_per_s: ">= 1500000",
  roundtrip_us: "<= 40",
  h2d_share: ">= 0.8",
  d2h_share: ">= 0.8",
  tls_h2d_share: ">= 0.8",
  tls_d2h_share: ">= 0.8",
  shared_h2d_share: ">= 1",
  shared_d2h_share: ">= 1",
  blocking_gpt: "1",
  blocking_mlp: "1",
  blocking_inference: "0",
  blocking_gpt_first: "<= 115",
  blocking_mlp_first: "<= 37",
  blocking_inference_first: "<= 19",
};

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const metrics = await nativeProgram("sluice-remoting-bench", figures);
  const root = path.resolve(import.meta.dirname, "..");
  const counts = await countBlocking(root, (line) => console.log(line));
  const blocking = Object.entries(counts).flatMap(([name, { first, steady }]): [string, number][] => [
    [`blocking_${name}`, steady],
    [`blocking_${name}_first`, first],
  ]);
  return { metrics: { ...metrics, ...Object.fromEntries(blocking) } };
}
