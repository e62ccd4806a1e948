/** How a service waits for a row to change, without knowing how the process hears of it. */

/** Watches one id from the moment it is made: a change before `changed` is called is not missed. */
export type Watch = {
  /** true after a change since the last call, false when `ms` have passed without one. */
  changed: (ms: number) => Promise<boolean>;
  close: () => void;
};

export type Watcher = (id: string) => Watch;
