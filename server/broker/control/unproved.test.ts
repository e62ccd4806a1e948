/** Which connection ends when strangers hold all places. */

import { expect, it } from "vitest";
import { MOST, MOST_OF_ADDRESS, UnprovedConnections } from "./unproved.ts";

type Held = { name: string; isSilent: boolean; isProved: boolean; drop: () => void };

function holder() {
  const connections = new UnprovedConnections<Held>();
  const dropped: string[] = [];
  const open = (name: string, address: string, state: Partial<Held> = {}) => {
    if (!connections.makeRoom(address)) return false;
    connections.add({ name, isSilent: false, isProved: false, drop: () => dropped.push(name), ...state }, address);
    return true;
  };
  /** Fills the limit with hellos that wait for an answer. */
  const fill = () => {
    for (let network = 0; network < MOST / MOST_OF_ADDRESS; network++)
      for (let count = 0; count < MOST_OF_ADDRESS; count++) open(`${network}-${count}`, `198.51.100.${network}`);
  };
  return { connections, dropped, open, fill };
}

it("refuses an address with all of its hellos waiting for an answer", () => {
  const { dropped, open } = holder();
  for (let count = 0; count < MOST_OF_ADDRESS; count++) expect(open(`${count}`, "192.0.2.1")).toBe(true);
  expect(open("one more", "192.0.2.1")).toBe(false);
  expect(open("another", "192.0.2.2")).toBe(true);
  expect(dropped).toEqual([]);
});

it("replaces the oldest hello of the busiest address when hellos fill the limit", () => {
  const { dropped, open, fill } = holder();
  expect(open("alone", "192.0.2.1")).toBe(true);
  fill();
  expect(dropped).toEqual(["0-0"]);
  expect(open("late", "192.0.2.2")).toBe(true);
  expect(dropped).toEqual(["0-0", "1-0"]);
});

it("replaces a silent connection before any hello", () => {
  const { dropped, open, fill } = holder();
  open("silent", "192.0.2.1", { isSilent: true });
  fill();
  expect(dropped).toEqual(["silent"]);
});

it("never replaces a connection with proof of a key", () => {
  const { dropped, open } = holder();
  for (let count = 0; count < MOST_OF_ADDRESS; count++) open(`proved ${count}`, "192.0.2.1", { isProved: true });
  for (let count = MOST_OF_ADDRESS; count < MOST; count++) open(`${count}`, `2001:db8:${count.toString(16)}::`);
  expect(open("late", "192.0.2.2")).toBe(true);
  expect(dropped).toEqual([`${MOST_OF_ADDRESS}`]);
});
