import { formatAmount } from "#components/format.ts";
import type { PackingProof } from "#server/contracts/sharing.ts";

/** Whether all guarantees fit the devices, and where they do not, how far they were laid on them. */
export function Packing({ proof, gpuType }: { proof: PackingProof | undefined; gpuType: string }) {
  return (
    <section
      aria-live="polite"
      aria-label="Whether the guarantees fit"
      className={proof ? "figures rounded-md bg-sunken px-3 py-2 text-sm" : "sr-only"}
    >
      {proof && proof.refusal === null && (
        <p>
          The guarantees of all teams fit the devices at every hour
          {proof.spareMilli > 0 &&
            `; at worst ${formatAmount(proof.spareMilli)} ${gpuType} beside them is left for smaller requests`}
          .
        </p>
      )}
      {proof && proof.refusal !== null && (
        <>
          <h3 className="font-medium">This cannot be saved</h3>
          <p className="mt-0.5 text-bad">{proof.refusal}</p>
          {proof.packing.length > 0 && (
            <table className="mt-2 w-full text-left">
              <caption className="text-left text-ink-2">How far the guarantees were laid on the devices</caption>
              <thead className="text-ink-2">
                <tr>
                  <th scope="col" className="pr-4 font-normal">
                    Device
                  </th>
                  <th scope="col" className="pr-4 font-normal">
                    Guaranteed to
                  </th>
                  <th scope="col" className="text-right font-normal">
                    Left
                  </th>
                </tr>
              </thead>
              <tbody>
                {proof.packing.map(({ device, pieces, leftMilli }) => (
                  <tr key={device} className="align-top">
                    <td className="pr-4">{device}</td>
                    <td className="pr-4">
                      {pieces.map(({ teamName, milli }) => `${teamName} ${formatAmount(milli)}`).join(", ") || "nobody"}
                    </td>
                    <td className="text-right">{formatAmount(leftMilli)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </>
      )}
    </section>
  );
}
