/** Helm as one program, compiled from its published module; kept outside the checkout for all of them. */
import { installGoCommand } from "#scripts/cluster/go-program.ts";

const HELM = { module: "helm.sh/helm/v3/cmd/helm", version: "v3.22.0" };

/** Compiles it if it is missing (two minutes on two cores); gives the program's path. */
export async function buildHelm(say: (line: string) => void): Promise<string> {
  return await installGoCommand("helm", HELM, say);
}
