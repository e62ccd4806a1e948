/**
 * Bounds on control connections without proof of a server's key. One address holds few of them. Strangers cannot keep
 * a gpud out: a new connection replaces the oldest silent one, or the oldest of the address with the most. A connection
 * with proof keeps its place.
 */

/** Maximum in all. Each connection has ten seconds for the proof. */
export const MOST = 512;
/** Maximum from one address. A gpud proves its key within a round trip, so many can share one address. */
export const MOST_OF_ADDRESS = 16;

type Connection = {
  /** Whether it has sent no data yet. */
  readonly isSilent: boolean;
  /** Whether it has proved a server's key, and only waits for the broker. */
  readonly isProved: boolean;
  /** Ends at once. */
  drop: () => void;
};

export class UnprovedConnections<T extends Connection> {
  /** With the address of each, oldest first. */
  readonly #addresses = new Map<T, string>();

  /** Whether a new connection from this address may be opened. Drops a connection if the limit is reached. */
  makeRoom(address: string): boolean {
    const ofAddress = this.#of(address);
    if (ofAddress.length >= MOST_OF_ADDRESS && !this.#dropFirst(ofAddress, ({ isSilent }) => isSilent)) return false;
    if (this.#addresses.size < MOST) return true;
    return (
      this.#dropFirst([...this.#addresses.keys()], ({ isSilent }) => isSilent) ||
      this.#dropFirst(this.#ofBusiest(), () => true)
    );
  }

  add(connection: T, address: string): void {
    this.#addresses.set(connection, address);
  }

  delete(connection: T): void {
    this.#addresses.delete(connection);
  }

  #of(address: string): T[] {
    return [...this.#addresses].filter(([, each]) => each === address).map(([connection]) => connection);
  }

  /** Connections without proof of the address that has the most of them. */
  #ofBusiest(): T[] {
    const ofAddress = new Map<string, T[]>();
    for (const [connection, address] of this.#addresses)
      if (!connection.isProved) ofAddress.set(address, [...(ofAddress.get(address) ?? []), connection]);
    return [...ofAddress.values()].reduce((most, each) => (each.length > most.length ? each : most), []);
  }

  #dropFirst(connections: readonly T[], mayDrop: (connection: T) => boolean): boolean {
    const dropped = connections.find(mayDrop);
    if (dropped === undefined) return false;
    this.#addresses.delete(dropped);
    dropped.drop();
    return true;
  }
}
