/**
 * Bounds on control connections without proof of a server's key. An anonymous client holds few of them, and a client
 * that says nothing keeps no gpud out: the oldest silent connection ends for a new one.
 */

/** Maximum in all. Each connection has ten seconds for the proof. */
const MOST = 512;
/** Maximum from one address. A gpud proves its key within a round trip, so many behind one address take turns. */
export const MOST_OF_ADDRESS = 16;

type Connection = {
  /** Whether it has sent nothing so far. */
  readonly isSilent: boolean;
  /** Ends at once. */
  drop: () => void;
};

export class UnprovedConnections<T extends Connection> {
  /** With the address of each, oldest first. */
  readonly #addresses = new Map<T, string>();

  /** Whether a new connection from this address may be opened. Ends a silent one where that makes room. */
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
