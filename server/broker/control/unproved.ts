/**
 * Bounds on control connections without proof of a server's key. One address holds few of them. Silent clients
 * cannot keep a gpud out: a new connection replaces the oldest silent one.
 */

/** Maximum in all. Each connection has ten seconds for the proof. */
const MOST = 512;
/** Maximum from one address. A gpud proves its key within a round trip, so many can share one address. */
export const MOST_OF_ADDRESS = 16;

type Connection = {
  /** Whether it has sent no data yet. */
  readonly isSilent: boolean;
  /** Ends at once. */
  drop: () => void;
};

export class UnprovedConnections<T extends Connection> {
  /** With the address of each, oldest first. */
  readonly #addresses = new Map<T, string>();

  /** Whether a new connection from this address may be opened. Drops a silent connection if the limit is reached. */
  makeRoom(address: string): boolean {
    const ofAddress = [...this.#addresses].filter(([, each]) => each === address).map(([connection]) => connection);
    return this.#makeRoomAmong(ofAddress, MOST_OF_ADDRESS) && this.#makeRoomAmong([...this.#addresses.keys()], MOST);
  }

  add(connection: T, address: string): void {
    this.#addresses.set(connection, address);
  }

  delete(connection: T): void {
    this.#addresses.delete(connection);
  }

  #makeRoomAmong(connections: readonly T[], limit: number): boolean {
    if (connections.length < limit) return true;
    const silent = connections.find(({ isSilent }) => isSilent);
    if (silent === undefined) return false;
    this.#addresses.delete(silent);
    silent.drop();
    return true;
  }
}
